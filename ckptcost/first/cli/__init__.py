"""The command line: argparse, one small file a command. stdout is data, stderr is speech, the exit
code is an API."""
