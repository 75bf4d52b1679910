"""Certificates of the day, good and bad."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Certificates:
    """A folder of certificates that one authority has signed."""

    folder: Path

    def server(self, *, name: str = "localhost", age: timedelta = timedelta(0)) -> ssl.SSLContext:
        """Return what a server needs whose certificate is for a name and 127.0.0.1."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._signed(name, datetime.now(UTC) - age))
        return context

    def trusting(self) -> ssl.SSLContext:
        """Return what a client needs that trusts the authority."""
        return ssl.create_default_context(cafile=str(self.folder / "authority.pem"))

    def _signed(self, name: str, now: datetime) -> Path:
        authority = x509.load_pem_x509_certificate((self.folder / "authority.pem").read_bytes())
        signer = serialization.load_pem_private_key(
            (self.folder / "authority.key").read_bytes(), password=None
        )
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(name)]
        if name == "localhost":
            names.append(x509.IPAddress(ip_address("127.0.0.1")))
        certificate = (
            _builder(name, authority.subject, key.public_key(), now)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
                critical=False,
            )
            .sign(signer, hashes.SHA256())
        )
        path = self.folder / f"{name}-{int(now.timestamp())}.pem"
        path.write_bytes(_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
        return path


def new_certificates(folder: Path) -> Certificates:
    """Make an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name("authority of the day")
    certificate = (
        _builder("authority of the day", subject, key.public_key(), datetime.now(UTC) - 9 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_key_usage(), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "authority.key").write_bytes(_pem(key))
    (folder / "authority.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Certificates(folder)


def _builder(
    name: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + (DAY if issuer != _name(name) else 30 * DAY))
    )


def _key_usage() -> x509.KeyUsage:
    off = dict.fromkeys(
        (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(key_cert_sign=True, crl_sign=True, **off)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
