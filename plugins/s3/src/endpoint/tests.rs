//! Endpoints, as Amazon's own rules find them.

use super::*;

fn found(rules: &Rules, bucket: &str, region: &str) -> Result<Endpoint, String> {
    rules.endpoint(bucket, &Arc::new(region.to_owned()))
}

fn rules(url: &str, flags: &str) -> Rules {
    Rules {
        url: Some(url.to_owned()).filter(|url| !url.is_empty()),
        path_style: flags.contains("path"),
        use_fips: flags.contains("fips"),
        use_dualstack: flags.contains("dual"),
    }
}

const POINT: &str = "arn:aws:s3:us-west-2:123456789012:accesspoint/mine";
const OUTPOST: &str = "arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-1/accesspoint/mine";

/// The expected URLs are those of AWS's SDK for Rust, version 1.157 of `aws-sdk-s3`, which follows Amazon's rules.
#[test]
#[rustfmt::skip]
fn a_bucket_is_where_amazons_rules_say() {
    for (url, flags, region, bucket, expected) in [
        // In the host if the name fits there: no certificate is valid for more than one name.
        ("", "", "eu-west-1", "data", "https://data.s3.eu-west-1.amazonaws.com"),
        ("", "", "eu-west-1", "my.data", "https://s3.eu-west-1.amazonaws.com/my.data"),
        ("", "", "eu-west-1", "Data", "https://s3.eu-west-1.amazonaws.com/Data"),
        ("", "", "eu-west-1", "ab", "https://s3.eu-west-1.amazonaws.com/ab"),
        ("", "", "eu-west-1", "a_b", "https://s3.eu-west-1.amazonaws.com/a_b"),
        ("", "", "eu-west-1", "abc-", "https://s3.eu-west-1.amazonaws.com/abc-"),
        ("", "", "eu-west-1", "192.168.1.1", "https://s3.eu-west-1.amazonaws.com/192.168.1.1"),
        ("", "", "eu-west-1", "my-ap-1234-s3alias", "https://my-ap-1234-s3alias.s3.eu-west-1.amazonaws.com"),
        ("", "path", "eu-west-1", "data", "https://s3.eu-west-1.amazonaws.com/data"),
        ("", "", "us-east-1", "", "https://s3.us-east-1.amazonaws.com"),
        // Variants.
        ("", "fips", "eu-west-1", "data", "https://data.s3-fips.eu-west-1.amazonaws.com"),
        ("", "dual", "eu-west-1", "data", "https://data.s3.dualstack.eu-west-1.amazonaws.com"),
        ("", "fips dual", "eu-west-1", "data", "https://data.s3-fips.dualstack.eu-west-1.amazonaws.com"),
        ("", "fips dual path", "eu-west-1", "data", "https://s3-fips.dualstack.eu-west-1.amazonaws.com/data"),
        // Partitions.
        ("", "", "cn-north-1", "data", "https://data.s3.cn-north-1.amazonaws.com.cn"),
        ("", "dual", "cn-north-1", "data", "https://data.s3.dualstack.cn-north-1.amazonaws.com.cn"),
        ("", "fips", "us-gov-west-1", "data", "https://data.s3-fips.us-gov-west-1.amazonaws.com"),
        ("", "", "us-iso-east-1", "data", "https://data.s3.us-iso-east-1.c2s.ic.gov"),
        ("", "", "us-isob-east-1", "data", "https://data.s3.us-isob-east-1.sc2s.sgov.gov"),
        ("", "", "eu-isoe-west-1", "data", "https://data.s3.eu-isoe-west-1.cloud.adc-e.uk"),
        ("", "", "us-isof-south-1", "data", "https://data.s3.us-isof-south-1.csp.hci.ic.gov"),
        ("", "", "eusc-de-east-1", "data", "https://data.s3.eusc-de-east-1.amazonaws.eu"),
        ("", "", "xx-odd-1", "data", "https://data.s3.xx-odd-1.amazonaws.com"),
        // Other endpoints.
        ("http://127.0.0.1:9000", "", "auto", "data", "http://127.0.0.1:9000/data"),
        ("http://localhost:9000", "", "auto", "data", "http://data.localhost:9000"),
        ("http://localhost:9000", "", "auto", "the.data", "http://the.data.localhost:9000"),
        ("http://localhost:9000", "", "auto", "my.data", "http://localhost:9000/my.data"),
        ("http://localhost:9000", "path", "auto", "data", "http://localhost:9000/data"),
        ("https://minio.internal/base/", "", "auto", "data", "https://data.minio.internal/base"),
        ("https://minio.internal/base/", "path", "auto", "data", "https://minio.internal/base/data"),
        ("https://minio.internal/base/", "", "auto", "my.data", "https://minio.internal/base/my.data"),
        ("https://s3.eu-west-1.amazonaws.com", "", "eu-west-1", "data", "https://data.s3.eu-west-1.amazonaws.com"),
        ("https://minio.internal", "path", "a_region", "data", "https://minio.internal/data"),
        // A tenant of Ceph cannot be a part of a host's name.
        ("http://ceph:7480", "", "default", "tenant:data", "http://ceph:7480/tenant%3Adata"),
        ("http://ceph:7480", "path", "default", ":data", "http://ceph:7480/%3Adata"),
        // Access points are in their own region.
        ("", "", "eu-west-1", POINT, "https://mine-123456789012.s3-accesspoint.us-west-2.amazonaws.com"),
        ("", "", "eu-west-1", "arn:aws:s3:us-west-2:123456789012:accesspoint:mine", "https://mine-123456789012.s3-accesspoint.us-west-2.amazonaws.com"),
        ("", "fips dual", "us-east-1", POINT, "https://mine-123456789012.s3-accesspoint-fips.dualstack.us-west-2.amazonaws.com"),
        ("", "", "cn-north-1", "arn:aws-cn:s3:cn-north-1:123456789012:accesspoint:mine", "https://mine-123456789012.s3-accesspoint.cn-north-1.amazonaws.com.cn"),
        ("http://localhost:9000", "", "eu-west-1", POINT, "http://mine-123456789012.localhost:9000"),
        // Outposts.
        ("", "", "eu-west-1", OUTPOST, "https://mine-123456789012.op-1.s3-outposts.us-west-2.amazonaws.com"),
        ("https://outposts.internal/base", "", "eu-west-1", OUTPOST, "https://mine-123456789012.op-1.outposts.internal"),
        ("", "", "us-west-2", "test-accessp-o0b1d075431d83bebde8xz5w8ijx1qzlbp3i3kuse10--op-s3",
            "https://test-accessp-o0b1d075431d83bebde8xz5w8ijx1qzlbp3i3kuse10--op-s3.op-0b1d075431d83bebd.s3-outposts.us-west-2.amazonaws.com"),
        ("", "", "us-west-2", "test-accessp-e0b1d075431d83bebde8xz5w8ijx1qzlbp3i3kuse10--op-s3",
            "https://test-accessp-e0b1d075431d83bebde8xz5w8ijx1qzlbp3i3kuse10--op-s3.ec2.s3-outposts.us-west-2.amazonaws.com"),
    ] {
        let endpoint = found(&rules(url, flags), bucket, region);
        let endpoint = endpoint.unwrap_or_else(|error| panic!("{bucket} {url} {flags}: {error}"));
        assert_eq!(&*endpoint.base, expected, "{bucket} {url} {flags}");
        let is_outpost = expected.contains("op-1.") || bucket.ends_with("--op-s3");
        assert_eq!(endpoint.signing_name, if is_outpost { OUTPOSTS } else { "s3" }, "{bucket}");
        let of_point = bucket.split(':').nth(3).filter(|_| bucket.starts_with("arn:"));
        assert_eq!(endpoint.signing_region, of_point.unwrap_or(region), "{bucket}");
    }
}

#[test]
#[rustfmt::skip]
fn what_contradicts_itself_has_no_endpoint() {
    for (url, flags, region, bucket, part) in [
        ("", "", "a_region", "data", "`a_region` cannot be a part of a host"),
        ("", "", "evil.example.com/", "data", "cannot be a part of a host"),
        ("", "fips", "cn-north-1", "data", "no FIPS endpoints in China"),
        ("http://h", "fips", "r", "data", "use_fips is for Amazon's own endpoints"),
        ("http://h", "dual", "r", "data", "use_dualstack is for Amazon's own endpoints"),
        ("http://h:x", "", "r", "data", "a port that is not a number"),
        ("http://", "path", "r", "data", "http:///data"),
        ("", "path", "eu-west-1", POINT, "no URL in path style"),
        ("", "", "cn-north-1", POINT, "the access point is in the partition aws"),
        ("", "fips", "eu-west-1", OUTPOST, "neither use_fips nor use_dualstack"),
        ("", "", "eu-west-1", "arn:aws:s3:us-west-2::accesspoint:mine", "`` cannot be a part of a host"),
        ("", "", "eu-west-1", "arn:aws:s3:us-west-2:123456789012:accesspoint:my.ap", "`my.ap` cannot be a part of a host"),
        ("", "", "eu-west-1", "arn:aws:s3:us-west-2:123456789012:accesspoint:mine:more", "is not the ARN of an access point"),
        ("", "", "eu-west-1", "arn:aws:not-s3:us-west-2:123456789012:accesspoint:mine", "is not the ARN of an access point"),
        ("", "", "eu-west-1", "arn:aws:s3-outposts:us-west-2:123456789012:outpost:op-1:bucket:x", "is not the ARN of an access point"),
    ] {
        let error = found(&rules(url, flags), bucket, region).unwrap_err();
        assert!(error.contains(part), "{bucket} {url} {flags}: {error}");
    }
}

#[test]
fn the_usual_port_is_not_named() {
    for (url, authority) in [
        ("http://h:9000/base", "h:9000"),
        ("http://h:80", "h"),
        ("https://h:443/x", "h"),
        ("https://h:80", "h:80"),
        ("http://[::1]:9000", "[::1]:9000"),
    ] {
        let endpoint = found(&rules(url, "path"), "data", "r").unwrap();
        assert_eq!(endpoint.authority, authority, "{url}");
    }
}

#[test]
fn a_path_is_for_stores_that_are_not_amazons() {
    for (url, expected) in [
        ("https://s3.eu-west-1.amazonaws.com", true),
        ("https://s3.cn-north-1.amazonaws.com.cn/", true),
        ("https://amazonaws.com.example.com", false),
        ("http://127.0.0.1:9000", false),
    ] {
        assert_eq!(is_amazon(url), expected, "{url}");
    }
}
