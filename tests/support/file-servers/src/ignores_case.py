
# A name that is there in another case is the one that is there.
import os
from pyftpdlib.filesystems import AbstractedFS
class IgnoresCase(AbstractedFS):
    def ftp2fs(self, ftppath):
        path = super().ftp2fs(ftppath)
        found = self.root
        for part in os.path.relpath(path, self.root).split(os.sep):
            there = os.listdir(found) if os.path.isdir(found) else []
            found = os.path.join(found, next((name for name in there if name.lower() == part.lower()), part))
        return os.path.normpath(found)
Handler.abstracted_fs = IgnoresCase
