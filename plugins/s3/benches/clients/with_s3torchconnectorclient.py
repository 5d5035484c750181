"""The operations by the client beneath s3torchconnector, the AWS Common Runtime, without PyTorch around it."""
import os

import s3torchconnectorclient
from objects import BUCKET, MIB, Objects, small
from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client

VERSION = "s3torchconnectorclient " + s3torchconnectorclient.__version__


class Client(Objects):
    def __init__(self, arguments):
        self.s3 = MountpointS3Client(
            os.environ["AWS_REGION"], endpoint=os.environ["AWS_ENDPOINT_URL"], force_path_style=True
        )
        self.chunk = os.urandom(MIB)

    def _length(self, key, *span):
        return sum(len(part) for part in self.s3.get_object(BUCKET, key, *span))

    def _put(self, key, *chunks):
        stream = self.s3.put_object(BUCKET, key)
        for chunk in chunks:
            stream.write(chunk)
        stream.close()

    def read_chunks(self, part):
        return self._length("big/" + part)

    def read_whole(self, part):
        return len(b"".join(self.s3.get_object(BUCKET, "big/" + part)))

    read_file = read_whole

    def write_large(self, out):
        self._put(out + "/large", *(self.chunk for _ in range(256)))

    def listdir(self, part):
        pages = self.s3.list_objects(BUCKET, prefix="listed-%s/" % part, delimiter="/")
        return sum(len(page.object_info) for page in pages)

    def stat(self, first, count):
        return sum(self.s3.head_object(BUCKET, key).size for key in small(first, count))

    def exists(self, first, count):
        return sum(self.s3.head_object(BUCKET, key).size > 0 for key in small(first, count))

    def copy(self, out):
        self.s3.copy_object(BUCKET, "copy/source", BUCKET, out + "/copied")

    def rename(self, out):
        self.s3.copy_object(BUCKET, out + "/before", BUCKET, out + "/after")
        self.s3.delete_object(BUCKET, out + "/before")
