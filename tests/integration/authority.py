"""Certificates, as an operator would make them."""

import subprocess


class Authority:
    """Makes certificates with openssl, as an operator would."""

    def __init__(self, folder, name):
        self.folder = folder
        self.name = name
        self._run("req", "-x509", *self.new_key(name), "-subj", f"/CN={name}",
                  "-addext", "basicConstraints=critical,CA:TRUE", "-out", self.path(f"{name}.pem"))

    def path(self, file):
        return str(self.folder / file)

    def new_key(self, name):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", self.path(f"{name}.key"))

    @staticmethod
    def _run(*args):
        return subprocess.run(["openssl", *args], check=True, capture_output=True, text=True).stdout

    @property
    def pem(self):
        return (self.folder / f"{self.name}.pem").read_text()

    def issue(self, name, host=None, days=2):
        """The paths of a new certificate and of its key."""
        request, names = self.path(f"{name}.csr"), self.path(f"{name}.ext")
        self._run("req", *self.new_key(name), "-subj", f"/CN={name}", "-out", request)
        (self.folder / f"{name}.ext").write_text(
            f"subjectAltName={host}\n" if host else "basicConstraints=CA:FALSE\n")
        self._run("x509", "-req", "-in", request, "-CA", self.path(f"{self.name}.pem"),
                  "-CAkey", self.path(f"{self.name}.key"), "-CAcreateserial", "-days", str(days),
                  "-extfile", names, "-out", self.path(f"{name}.pem"))
        return self.path(f"{name}.pem"), self.path(f"{name}.key")

    def fingerprint(self, certificate):
        return self._run("x509", "-in", certificate, "-noout", "-fingerprint", "-sha256")
