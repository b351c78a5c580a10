"""One line each for the frameworks, by the names that training scripts import: the first edition's
modules, the same objects, so that what one name wraps the other takes back."""

import sys

from ckptcost.first.hooks import accelerate, dcp, deepspeed, hugging_face, lightning, torch_save

__all__ = ["accelerate", "dcp", "deepspeed", "hugging_face", "lightning", "torch_save"]

for _name in __all__:
    sys.modules[f"ckptcost.hooks.{_name}"] = globals()[_name]
