"""The Python side of a sandbox: a kernel that keeps variables between cells and sends typed outputs.

It uses the standard library only. Libraries of the image (pandas, matplotlib …) are used when a cell has them, never imported
for their own sake. What a module needs is bound at import, because a cell may patch any module that it can reach.
"""
