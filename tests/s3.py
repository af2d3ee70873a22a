"""A real S3 server of moto, and buckets in it."""

import contextlib
import subprocess
import sys
import uuid
from collections.abc import Iterator

import boto3
import httpx

from tests.served import free_port, wait_until

KEY, SECRET = "key", "s/ecret+"


class S3Server:
    """A server in a process of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def responds(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.endpoint}/moto-api/", timeout=5).status_code == 200
        return False

    def client(self):
        credentials = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        return boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1", **credentials)

    def create_bucket(self) -> str:
        name = f"files-{uuid.uuid4().hex[:8]}"
        self.client().create_bucket(Bucket=name)
        return name

    def url(self, bucket: str) -> str:
        """Return the value of STORAGE_URL for a bucket."""
        return f"s3://{KEY}:s%2Fecret%2B@{bucket}/agents?endpoint={self.endpoint}&region=us-east-1"

    def names(self, bucket: str) -> list[str]:
        return [entry["Key"] for entry in self.client().list_objects_v2(Bucket=bucket).get("Contents", ())]


@contextlib.contextmanager
def running_s3() -> Iterator[S3Server]:
    """Run a server during the block."""
    server = S3Server()
    try:
        wait_until(server.responds, 60, "the S3 server")
        yield server
    finally:
        server.process.kill()
        server.process.wait()
