//! Each model in all interleavings up to its number of preemptions.

use tf_plugin_race_tests::abi::{copies, events, kernels};
use tf_plugin_race_tests::shared;

macro_rules! models {
    ($($module:ident::$name:ident;)*) => {
        $(
            #[test]
            fn $name() {
                $module::$name();
            }
        )*
    };
}

models! {
    kernels::first_kernels_of_a_stream;
    kernels::waiting_for_one_stream_of_two;
    kernels::waiting_for_a_stream_of_another_device;
    kernels::two_copies_in_one_stream;
    kernels::a_stream_goes_while_others_wait;
    copies::an_event_behind_a_copy;
    copies::a_copy_that_fails;
    copies::two_who_wait_for_a_copy;
    copies::a_ledger_that_is_cleared_up;
    copies::an_event_that_is_passed_on;
    copies::copies_that_are_used_again;
    copies::a_copy_that_is_used_again_at_once;
    events::an_event_that_goes_round;
    events::an_event_that_is_recorded_again_meanwhile;
    events::a_stream_that_goes;
    events::two_who_record_where_a_stream_has_gone;
    shared::streams_that_fail;
    shared::a_failure_that_is_seen;
}
