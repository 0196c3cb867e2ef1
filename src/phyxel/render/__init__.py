"""Pictures and videos. The room itself can be called: `px.render(world)` is a picture."""

import inspect
import sys
from types import ModuleType
from typing import Any

from phyxel.render.picture import render


class CallableRoom(ModuleType):
    """A module with the name of its most important verb."""

    __signature__ = inspect.signature(render)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """See `phyxel.render.picture.render`."""
        return render(*args, **named)


sys.modules[__name__].__class__ = CallableRoom
__doc__ = str(render.__doc__)  # what help(px.render) says
