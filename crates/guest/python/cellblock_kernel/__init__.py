"""The Python side of a sandbox: a kernel that keeps variables between cells and sends typed outputs.

It uses only the standard library. It uses libraries of the image (pandas, matplotlib …) when a cell has
imported them, but never imports them for itself. Modules bind what they need at import, because a cell may
patch any module that it can reach.

`boot` starts kernels, `cell` runs code, `outputs` describes values, `library` contains what cells can call,
`rescue` keeps a copy of the kernel. Two packages are at the top level because user code sees their names: it
imports `timeseries`, and the objects of `IPython.display` belong to classes of `notebook`.
"""
