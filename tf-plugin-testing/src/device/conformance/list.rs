//! The list of all cases, from which the tests of authors, [`run`](super::run_case) and the documentation are made.

use super::case::{Case, Group};
use super::copies::{self, Way};
use super::run::{Run, Step};
use super::{loading, memory, order, threads};
use se_plugin::Pattern;

/// A list of cases in which one row can define several, each by its whole name, so that a search finds it:
///
/// - `sizes`: a check with so many bytes, with the texts before and behind their number.
/// - `copies`: a way to copy, with several sizes and at an odd address.
macro_rules! device_cases {
    ($d:tt $tests:ident $($group:ident {
        $(sizes $sizes_why:literal {
            $($check:expr, $head:literal $tail:literal [
                $($name:ident $bytes:expr, $text:literal;)*
            ];)*
        })*
        $(copies {
            $($way:ident $copy_why:literal:
                $of_1_byte:ident $of_3_bytes:ident $of_4_kib:ident $of_1_mib_and_1:ident $at_an_odd_address:ident;)*
        })?
        $(of $at:ident { $($of:ident $checks:literal, $why:literal;)* })*
    })*) => { case_list! {
        $d device $tests $($group {
            $($($($name = |run| {
                const CHECK: fn(&mut Run<'_>, usize) -> Step = $check;
                CHECK(run, $bytes)
            }, concat!($head, $text, $tail), $sizes_why;)*)*)*
            $($(
                $of_1_byte = |run| copies::copy(run, Way::$way, 1, 0),
                    concat!("`", stringify!($way), "` of 1 byte copies all of it, and nothing else changes"), $copy_why;
                $of_3_bytes = |run| copies::copy(run, Way::$way, 3, 0),
                    concat!("`", stringify!($way), "` of 3 bytes copies all of it, and nothing else changes"), $copy_why;
                $of_4_kib = |run| copies::copy(run, Way::$way, 4096, 0),
                    concat!("`", stringify!($way), "` of 4 KiB copies all of it, and nothing else changes"), $copy_why;
                $of_1_mib_and_1 = |run| copies::copy(run, Way::$way, (1 << 20) + 1, 0),
                    concat!("`", stringify!($way), "` of 1 MiB and a byte copies all of it, and nothing else changes"), $copy_why;
                $at_an_odd_address = |run| copies::copy(run, Way::$way, 1001, 3),
                    concat!("`", stringify!($way), "` copies also where the address is odd"), "TensorFlow slices tensors of single bytes";
            )*)?
            $($($of = $at::$of, $checks, $why;)*)*
        })*
    } };
}

device_cases! {
    ($) __device_conformance_tests
    Loading {
        of loading {
            every_callback "No callback is missing that TensorFlow calls without a look",
                "TensorFlow calls some callbacks through null pointers if they are missing";
            device_count_is_the_same "`get_device_count` returns the same number each time, and no error",
                "TensorFlow calls it more than once and numbers the devices";
            all_devices_open "`create_device` of each ordinal returns a working device",
                "a device that is counted and does not open ends the process";
            devices_open_again "A device that was destroyed can be opened again",
                "tests and servers open devices more than once";
            no_device_beyond_the_last "`create_device` beyond the last ordinal is an error",
                "a wrong ordinal must not become another device";
        }
    }
    Description {
        of loading {
            hardware_name "The hardware name, if there is one, is not empty",
                "it is how people tell devices apart";
            vendor "The vendor, if there is one, is not empty",
                "it is how people tell devices apart";
            pci_bus_id "The PCI address, if there is one, is as in `0000:00:02.1`",
                "TensorFlow looks up the NUMA node by it";
            figures "NUMA node, bandwidth and operations a nanosecond are numbers or unknown",
                "graph optimizers calculate with them";
            memory_usage "`device_memory_usage` returns no more free than total memory",
                "TensorFlow takes what it says is free, and runs nothing where it is unknown";
            allocator_stats "`get_allocator_stats`, if there are any, count an allocation",
                "`tf.config.experimental.get_memory_info` shows them";
        }
    }
    Memory {
        sizes "TensorFlow divides memory at multiples of 256 from there" {
            memory::of, "`allocate` of " " returns an address that is a multiple of 256, and the memory keeps its content" [
                allocate_1_byte 1, "1 byte";
                allocate_255_bytes 255, "255 bytes";
                allocate_256_bytes 256, "256 bytes";
                allocate_257_bytes 257, "257 bytes";
                allocate_4_kib 4096, "4 KiB";
                allocate_1_mib 1 << 20, "1 MiB";
                allocate_4_mib 4 << 20, "4 MiB";
            ];
        }
        sizes "kernels on the host use vector instructions on it" {
            memory::of_the_host, "`host_memory_allocate` of " " returns memory that is aligned to 64 bytes" [
                host_memory_of_1_byte 1, "1 byte";
                host_memory_of_64_bytes 64, "64 bytes";
                host_memory_of_4_kib 4096, "4 KiB";
                host_memory_of_1_mib 1 << 20, "1 MiB";
            ];
        }
        of memory {
            allocations_do_not_overlap "No two allocations overlap",
                "tensors would change each other";
            allocations_keep_their_content "Memory keeps its content while other memory is allocated and freed",
                "variables stay for hours";
            too_much_is_refused "`allocate` of more than the free memory returns null, and the device continues to work",
                "TensorFlow requests less then, or raises ResourceExhaustedError";
            freed_memory_comes_back "What is freed can be allocated again, more often than there is memory",
                "TensorFlow gives regions back for larger ones";
            usage_counts_allocations "`device_memory_usage`, if it counts, has less free while memory is allocated",
                "TensorFlow takes what it says is free";
            devices_have_their_own_addresses "No two devices of the platform have an address in common",
                "TensorFlow tells memory of two devices apart by the address alone when it copies";
            parts_of_a_region "Addresses within an allocation work as its start does",
                "nearly every address that TensorFlow passes is within a region";
        }
    }
    Copies {
        copies {
            memcpy_htod "every tensor gets to the device by it":
                stream_copy_to_device_of_1_byte stream_copy_to_device_of_3_bytes stream_copy_to_device_of_4_kib stream_copy_to_device_of_1_mib_and_1 stream_copy_to_device_at_an_odd_address;
            memcpy_dtoh "every value that Python sees comes by it":
                stream_copy_to_host_of_1_byte stream_copy_to_host_of_3_bytes stream_copy_to_host_of_4_kib stream_copy_to_host_of_1_mib_and_1 stream_copy_to_host_at_an_odd_address;
            memcpy_dtod "TensorFlow copies variables and lists by it":
                stream_copy_on_device_of_1_byte stream_copy_on_device_of_3_bytes stream_copy_on_device_of_4_kib stream_copy_on_device_of_1_mib_and_1 stream_copy_on_device_at_an_odd_address;
            sync_memcpy_htod "plugins of others and older releases call it":
                sync_copy_to_device_of_1_byte sync_copy_to_device_of_3_bytes sync_copy_to_device_of_4_kib sync_copy_to_device_of_1_mib_and_1 sync_copy_to_device_at_an_odd_address;
            sync_memcpy_dtoh "plugins of others and older releases call it":
                sync_copy_to_host_of_1_byte sync_copy_to_host_of_3_bytes sync_copy_to_host_of_4_kib sync_copy_to_host_of_1_mib_and_1 sync_copy_to_host_at_an_odd_address;
            sync_memcpy_dtod "plugins of others and older releases call it":
                sync_copy_on_device_of_1_byte sync_copy_on_device_of_3_bytes sync_copy_on_device_of_4_kib sync_copy_on_device_of_1_mib_and_1 sync_copy_on_device_at_an_odd_address;
        }
    }
    Fills {
        sizes "TensorFlow makes zeros of variables and gradients by it" {
            |run, bytes| copies::fill(run, Pattern::Zero, bytes), "`mem_zero` fills " ", all of it and nothing else" [
                fill_with_zero_1_byte 1, "1 byte";
                fill_with_zero_3_bytes 3, "3 bytes";
                fill_with_zero_4_kib 4096, "4 KiB";
                fill_with_zero_1_mib_and_4 (1 << 20) + 4, "1 MiB and 4 bytes";
            ];
            |run, bytes| copies::fill(run, Pattern::Byte(0x5c), bytes), "`memset` fills " ", all of it and nothing else" [
                fill_with_bytes_1_byte 1, "1 byte";
                fill_with_bytes_3_bytes 3, "3 bytes";
                fill_with_bytes_4_kib 4096, "4 KiB";
                fill_with_bytes_1_mib_and_4 (1 << 20) + 4, "1 MiB and 4 bytes";
            ];
            |run, bytes| copies::fill(run, Pattern::Word(0x0102_0304), bytes), "`memset32` fills " ", all of it and nothing else" [
                fill_with_words_4_bytes 4, "4 bytes";
                fill_with_words_4_kib 4096, "4 KiB";
                fill_with_words_1_mib_and_4 (1 << 20) + 4, "1 MiB and 4 bytes";
            ];
        }
    }
    Order {
        of order {
            a_stream_works_in_order "Work in one stream is done in order",
                "TensorFlow waits for nothing between ops of one stream";
            block_host_until_done_waits "After `block_host_until_done` the work of the stream is done",
                "the host reads results then";
            synchronize_waits_for_all_streams "After `synchronize_all_activity` the work of all streams is done",
                "it runs whenever Python fetches a value";
            a_stream_waits_for_another "`create_stream_dependency` makes later work wait for what is in the other stream",
                "copies to the device and kernels are in different streams";
            a_stream_waits_for_an_event "`wait_for_event` makes later work wait for the event",
                "copies between devices wait for events";
            a_stream_waits_for_a_chain "Work waits for a stream that waits for another",
                "dependencies are not only between two";
            a_stream_that_only_waits_is_busy "A stream that waits for another is done after what it waits for",
                "TensorFlow frees memory and reads results when a stream is done";
            a_stream_waits_for_itself "A stream that waits for itself continues",
                "TensorFlow does not look whether two streams are the same";
            two_streams_wait_for_each_other "Two streams that wait for each other continue: each waits for the work before",
                "TensorFlow makes such pairs for copies there and back";
            work_outlives_its_stream "Destroying a stream does not stop its work",
                "TensorFlow destroys streams without waiting";
            many_streams "Hundreds of streams can be made and destroyed one after the other",
                "a leak shows after hours";
            stream_status_is_good "`get_stream_status` of a stream that works is OK, while it is busy too",
                "TensorFlow ends work on a stream whose status is not OK";
        }
    }
    Events {
        of order {
            event_never_recorded "An event that was never recorded is complete, and a wait for it ends",
                "TensorFlow polls such events";
            event_that_is_polled "When an event is complete, the work before its latest record is done",
                "TensorFlow frees and reads memory then";
            event_that_is_waited_for "After `block_host_for_event` the work before the latest record is done",
                "TensorFlow frees and reads memory then";
            event_is_complete_at_last "An event that is recorded is complete at last, each of many times",
                "TensorFlow polls forever";
            event_moves_to_another_stream "An event that is recorded in a second stream says how far that one is",
                "TensorFlow has a pool of events";
            event_outlives_its_stream "An event says how far the work is also after its stream was destroyed",
                "TensorFlow destroys them in any order";
            event_destroyed_while_pending "An event can be destroyed before it is complete",
                "TensorFlow destroys them in any order";
            many_events "A thousand events can be pending",
                "TensorFlow has one for each tensor that is not freed yet";
        }
    }
    Callbacks {
        of order {
            callback_is_made_once "A host callback is called once, with the status OK",
                "a second call is of freed memory, and a missing one waits forever";
            callback_is_made_in_order "A host callback is called when the work before it is done",
                "TensorFlow frees what the work uses";
            callbacks_are_made_in_order "Host callbacks of a stream are called one after the other, in their order",
                "a later one may use what an earlier one has made";
            callback_is_made_on_another_thread "A host callback is not called on the thread that enqueues it",
                "that thread may hold a lock that the callback takes";
            work_waits_for_a_callback "Later work and waits of the stream wait until a host callback has returned",
                "TensorFlow frees what the callback uses";
        }
    }
    Timers {
        of order {
            timer_measures "A timer measures the time between two points in a stream; before that it is at 0",
                "TensorFlow 2.12 and 2.13 choose algorithms by it";
            timer_measures_again "A timer can be started again",
                "TensorFlow 2.12 and 2.13 use a timer more than once";
        }
    }
    Threads {
        of threads {
            threads_with_their_own_streams "Eight threads use a stream each",
                "TensorFlow calls from as many threads as there are cores";
            threads_with_one_stream "Eight threads use one stream",
                "all kernels of a device share one stream";
            threads_that_allocate "Eight threads allocate and free",
                "TensorFlow calls from as many threads as there are cores";
            threads_that_make_streams "Eight threads make and destroy streams and events",
                "TensorFlow calls from as many threads as there are cores";
            threads_that_synchronize "Eight threads wait for the whole device, each after work of its own",
                "each Python thread that fetches a value does";
        }
    }
    Random {
        of threads {
            random_work "Random work in three streams that wait for each other leaves the memory that a model has",
                "unforeseen combinations";
        }
    }
}

impl Case {
    /// Returns all cases, in their order.
    #[must_use]
    pub fn all() -> &'static [&'static Self] {
        CASES
    }
}
