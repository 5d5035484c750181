//! What a name is: the results, the requests that they cost, and the cache.

mod questions;
mod remembered;
mod tenants;

use std::collections::BTreeMap;
use tf_plugin_s3_tests::counts;

/// One listing.
fn list(count: usize) -> BTreeMap<String, usize> {
    counts([("ListObjectsV2", count)])
}
