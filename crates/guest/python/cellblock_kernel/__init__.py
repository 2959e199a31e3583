"""The Python side of a sandbox: a kernel that keeps variables between cells and sends typed outputs.

It uses the standard library only. Libraries of the image (pandas, matplotlib …) are used when a cell has them, never imported
for their own sake. What a module needs is bound at import, because a cell may patch any module that it can reach.

`boot` starts kernels, `cell` runs code, `outputs` describes values, `library` holds what code finds, `rescue` keeps a copy of the
kernel. Two packages are at the top because user code sees their names: it imports from `timeseries`, and the objects of
`IPython.display` belong to classes of `notebook`.
"""
