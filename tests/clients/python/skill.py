"""A skill that greets, as the files and as the archive that clients send."""

import base64
import io
import zipfile
from typing import Any, Final

FILES: Final = {
    "greeter/SKILL.md": b"---\nname: greeter\ndescription: Greets. Use it when somebody wants a greeting.\n---\nRun greet.sh.\n",
    "greeter/greet.sh": b"echo hello from a skill\n",
}


def inline() -> dict[str, Any]:
    """The skill in a request."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    return {
        "type": "inline",
        "name": "greeter",
        "description": "Greets. Use it when somebody wants a greeting.",
        "source": {
            "type": "base64",
            "media_type": "application/zip",
            "data": base64.b64encode(packed.getvalue()).decode(),
        },
    }
