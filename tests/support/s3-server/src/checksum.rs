//! The checksums of S3: computed while a body arrives, compared, joined over parts.

use base64_simd::STANDARD;
use crc_fast::{CrcAlgorithm, checksum_combine};
use http::HeaderMap;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32c, Crc64Nvme, Sha1, Sha256};
use s3s::dto::Checksum;
use s3s::{S3Result, s3_error};

use crate::data::Data;

/// One of the algorithms that S3 supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl Algorithm {
    pub(crate) const ALL: [Algorithm; 5] = [
        Algorithm::Crc32,
        Algorithm::Crc32c,
        Algorithm::Crc64Nvme,
        Algorithm::Sha1,
        Algorithm::Sha256,
    ];

    /// Returns its name, as in `x-amz-checksum-algorithm`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Algorithm::Crc32 => "CRC32",
            Algorithm::Crc32c => "CRC32C",
            Algorithm::Crc64Nvme => "CRC64NVME",
            Algorithm::Sha1 => "SHA1",
            Algorithm::Sha256 => "SHA256",
        }
    }

    fn header(self) -> &'static str {
        match self {
            Algorithm::Crc32 => "x-amz-checksum-crc32",
            Algorithm::Crc32c => "x-amz-checksum-crc32c",
            Algorithm::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Algorithm::Sha1 => "x-amz-checksum-sha1",
            Algorithm::Sha256 => "x-amz-checksum-sha256",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }

    /// Returns the field of `sums` for this algorithm.
    pub(crate) fn of(self, sums: &Checksum) -> Option<&String> {
        match self {
            Algorithm::Crc32 => sums.checksum_crc32.as_ref(),
            Algorithm::Crc32c => sums.checksum_crc32c.as_ref(),
            Algorithm::Crc64Nvme => sums.checksum_crc64nvme.as_ref(),
            Algorithm::Sha1 => sums.checksum_sha1.as_ref(),
            Algorithm::Sha256 => sums.checksum_sha256.as_ref(),
        }
    }

    pub(crate) fn set(self, sums: &mut Checksum, value: String) {
        let field = match self {
            Algorithm::Crc32 => &mut sums.checksum_crc32,
            Algorithm::Crc32c => &mut sums.checksum_crc32c,
            Algorithm::Crc64Nvme => &mut sums.checksum_crc64nvme,
            Algorithm::Sha1 => &mut sums.checksum_sha1,
            Algorithm::Sha256 => &mut sums.checksum_sha256,
        };
        *field = Some(value);
    }

    fn crc(self) -> Option<(CrcAlgorithm, usize)> {
        match self {
            Algorithm::Crc32 => Some((CrcAlgorithm::Crc32IsoHdlc, 4)),
            Algorithm::Crc32c => Some((CrcAlgorithm::Crc32Iscsi, 4)),
            Algorithm::Crc64Nvme => Some((CrcAlgorithm::Crc64Nvme, 8)),
            Algorithm::Sha1 | Algorithm::Sha256 => None,
        }
    }

    /// Returns the checksum of `data`, in base64.
    pub(crate) fn compute(self, data: &Data) -> String {
        let mut hasher = Hasher::default();
        hasher.enable(self);
        data.for_each(|bytes| hasher.update(bytes));
        let sums = hasher.finalize();
        self.of(&sums).cloned().unwrap_or_default()
    }

    /// Returns the checksum of checksums: that of `parts`' raw values, with their count.
    pub(crate) fn composite(self, parts: &[&str]) -> String {
        let raw: Vec<u8> = parts
            .iter()
            .flat_map(|part| STANDARD.decode_to_vec(part).unwrap_or_default())
            .collect();
        format!("{}-{}", self.compute(&Data::from(bytes::Bytes::from(raw))), parts.len())
    }

    /// Returns the checksum of the whole from those of its parts and their lengths. Only CRCs have one.
    pub(crate) fn joined(self, parts: &[(&str, u64)]) -> Option<String> {
        let (algorithm, width) = self.crc()?;
        let number = |text: &str| {
            STANDARD
                .decode_to_vec(text)
                .unwrap_or_default()
                .iter()
                .fold(0, |n, b| n << 8 | u64::from(*b))
        };
        let all = parts.iter().fold(None, |all: Option<u64>, (part, len)| {
            Some(match all {
                None => number(part),
                Some(all) => checksum_combine(algorithm, all, number(part), *len),
            })
        })?;
        Some(STANDARD.encode_to_string(&all.to_be_bytes()[8 - width..]))
    }
}

/// Computes checksums of a body.
#[derive(Default)]
pub(crate) struct Hasher {
    // Most clients send it, and the one in `others` is slow without optimizations.
    crc32: Option<crc32fast::Hasher>,
    others: ChecksumHasher,
}

impl Hasher {
    pub(crate) fn enable(&mut self, algorithm: Algorithm) {
        match algorithm {
            Algorithm::Crc32 => self.crc32 = Some(crc32fast::Hasher::new()),
            Algorithm::Crc32c => self.others.crc32c = Some(Crc32c::new()),
            Algorithm::Crc64Nvme => self.others.crc64nvme = Some(Crc64Nvme::new()),
            Algorithm::Sha1 => self.others.sha1 = Some(Sha1::new()),
            Algorithm::Sha256 => self.others.sha256 = Some(Sha256::new()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(crc32) = &mut self.crc32 {
            crc32.update(bytes);
        }
        self.others.update(bytes);
    }

    pub(crate) fn finalize(self) -> Checksum {
        let crc32 = self.crc32.map(|crc32| crc32.finalize().to_be_bytes());
        let mut sums = self.others.finalize();
        sums.checksum_crc32 = crc32.map(|crc32| STANDARD.encode_to_string(crc32));
        sums
    }
}

/// Takes the checksums that a client sent at the end of an `aws-chunked` body.
pub(crate) fn from_trailers(sums: &mut Checksum, trailers: &HeaderMap) {
    for algorithm in Algorithm::ALL {
        if let Some(value) = trailers.get(algorithm.header()).and_then(|value| value.to_str().ok())
        {
            algorithm.set(sums, value.to_owned());
        }
    }
}

/// Returns the algorithms that a client has announced in `x-amz-trailer`.
pub(crate) fn announced(headers: &HeaderMap) -> impl Iterator<Item = Algorithm> + '_ {
    let names = headers.get_all("x-amz-trailer").iter().filter_map(|value| value.to_str().ok());
    names.flat_map(|names| names.split(',')).filter_map(|name| {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.header().eq_ignore_ascii_case(name.trim()))
    })
}

/// Compares each checksum in `expected` with that in `actual`.
///
/// # Errors
/// `BadDigest` with the algorithm.
pub(crate) fn compare(expected: &Checksum, actual: &Checksum) -> S3Result<()> {
    for algorithm in Algorithm::ALL {
        if let Some(expected) = algorithm.of(expected)
            && algorithm.of(actual) != Some(expected)
        {
            let name = algorithm.name();
            return Err(s3_error!(
                BadDigest,
                "The {name} you specified did not match the calculated checksum."
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn joined_crcs_are_those_of_the_whole() {
        let (a, b) =
            (Data::from(Bytes::from_static(b"hello ")), Data::from(Bytes::from_static(b"world")));
        let whole = Data::concat([&a, &b]);
        for algorithm in [Algorithm::Crc32, Algorithm::Crc32c, Algorithm::Crc64Nvme] {
            let (first, second) = (algorithm.compute(&a), algorithm.compute(&b));
            let joined = algorithm.joined(&[(&first, a.len()), (&second, b.len())]);
            assert_eq!(joined, Some(algorithm.compute(&whole)), "{algorithm:?}");
        }
        // The check value of the CRC-32C catalogue, for "123456789".
        let check = Algorithm::Crc32c.compute(&Bytes::from_static(b"123456789").into());
        assert_eq!(check, STANDARD.encode_to_string(0xe306_9283_u32.to_be_bytes()));
    }
}
