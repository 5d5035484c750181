//! The state that the stores of one plugin share. A process of its own.

use std::sync::Arc;
use tf_fs_object_store::Process;

#[test]
fn the_largest_budget_counts_for_all_schemes_together() {
    let budget = |scheme, bytes| Process::current(scheme, 1, bytes).unwrap().budget.limit();
    assert_eq!(budget("one", 10 << 20), 10 << 20);
    assert_eq!(budget("two", 4 << 20), 10 << 20);
    // Each may change its mind.
    assert_eq!(budget("one", 2 << 20), 4 << 20);
    assert_eq!(budget("two", 1 << 20), 2 << 20);
    let (one, two) = (Process::current("one", 1, 1), Process::current("two", 9, 1));
    assert!(Arc::ptr_eq(&one.unwrap(), &two.unwrap()));
}
