//! The fields that versioned structs go by. Their sizes are compared with the headers, in `tests/abi`.

use tf_fs_sys::*;

#[test]
fn fields_and_functions_are_those_of_the_struct() {
    assert_eq!(SP_Device::FIELDS, [8..16, 16..20, 24..32, 32..40, 40..48, 48..56]);
    assert_eq!(TP_ProfilerFns::FUNCTIONS, ["start", "stop", "collect_data_xspace"]);
    assert_eq!(TP_ProfilerFns::NAME, "TP_ProfilerFns");
}
