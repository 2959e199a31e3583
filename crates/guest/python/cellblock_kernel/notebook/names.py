"""Names that the parts of this package share."""

# Magics that set up a notebook's front end; there is nothing to set up here.
HARMLESS = frozenset({
    "aimport", "alias", "autoreload", "autosave", "colors", "config", "load_ext", "matplotlib", "pdb", "precision", "reload_ext",
    "unload_ext", "xmode",
})  # fmt: skip
# Programs that install packages, as written in a command.
PACKAGE_TOOLS = (
    r"(?:python[\d.]*[ \t]+-m[ \t]+)?pip[\d.]*", r"uv[ \t]+pip", r"uv", r"conda", r"mamba", r"poetry", r"easy_install",
)  # fmt: skip
# Advice on how to get a package.
REQUIREMENTS = "name packages in the call's `requirements` (on the command line `--require`) and run the code again"
