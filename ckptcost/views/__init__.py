"""What each screen shows, as data: asked of the same jobs as the commands, put into words by
`present`. No screen toolkit here."""
