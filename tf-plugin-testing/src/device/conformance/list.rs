//! All cases: the one list that the tests of authors, [`run`](super::run_case) and the documentation are made of.

use super::case::{Case, Group};
use super::copies::{self, Way};
use super::{loading, memory, order, threads};
use se_plugin::Pattern;

case_list! {
    ($) device __device_conformance_tests
    Loading "Loading" {
        every_callback = loading::every_callback,
            "No callback is missing that TensorFlow calls without a look",
            "TensorFlow calls some callbacks through null pointers if they are missing";
        names = loading::names,
            "Name and type are capital letters and `_`",
            "TensorFlow aborts the process on other names";
        device_count_is_the_same = loading::same_count,
            "`get_device_count` answers the same each time, and no error",
            "TensorFlow asks more than once and gives the devices numbers";
        all_devices_open = loading::all_open,
            "`create_device` of each ordinal answers a device that works",
            "a device that is counted and does not open ends the process";
        devices_open_again = loading::opens_again,
            "A device that was destroyed can be opened again",
            "tests and servers open devices more than once";
        no_device_beyond_the_last = loading::no_device_beyond,
            "`create_device` beyond the last ordinal is an error",
            "a wrong ordinal must not become another device";
    }
    Description "What a device says of itself" {
        hardware_name = loading::hardware_name,
            "The hardware name, if there is one, is not empty",
            "it is how people tell devices apart";
        vendor = loading::vendor,
            "The vendor, if there is one, is not empty",
            "it is how people tell devices apart";
        pci_bus_id = loading::pci_bus_id,
            "The PCI address, if there is one, is as in `0000:00:02.1`",
            "TensorFlow looks up the NUMA node by it";
        figures = loading::figures,
            "NUMA node, bandwidth and operations a nanosecond are numbers or unknown",
            "graph optimizers calculate with them";
        memory_usage = loading::memory_usage,
            "`device_memory_usage` answers no more free memory than there is",
            "TensorFlow takes what it says is free, and runs nothing where it is unknown";
        allocator_stats = loading::allocator_stats,
            "`get_allocator_stats`, if there are any, count an allocation",
            "`tf.config.experimental.get_memory_info` shows them";
    }
    Memory "Memory" {
        allocate_1_byte = |run| memory::of(run, 1),
            "`allocate` of 1 byte answers an address that is a multiple of 256, and the memory keeps its content",
            "TensorFlow divides memory at multiples of 256 from there";
        allocate_255_bytes = |run| memory::of(run, 255),
            "`allocate` of 255 bytes answers an address that is a multiple of 256, and the memory keeps its content",
            "TensorFlow divides memory at multiples of 256 from there";
        allocate_256_bytes = |run| memory::of(run, 256),
            "`allocate` of 256 bytes answers an address that is a multiple of 256, and the memory keeps its content",
            "TensorFlow divides memory at multiples of 256 from there";
        allocate_257_bytes = |run| memory::of(run, 257),
            "`allocate` of 257 bytes answers an address that is a multiple of 256, and the memory keeps its content",
            "TensorFlow divides memory at multiples of 256 from there";
        allocate_4_kib = |run| memory::of(run, 4096),
            "`allocate` of 4 KiB answers an address that is a multiple of 256, and the memory keeps its content",
            "TensorFlow divides memory at multiples of 256 from there";
        allocate_1_mib = |run| memory::of(run, 1 << 20),
            "`allocate` of 1 MiB answers an address that is a multiple of 256, and the memory keeps its content",
            "TensorFlow divides memory at multiples of 256 from there";
        allocate_4_mib = |run| memory::of(run, 4 << 20),
            "`allocate` of 4 MiB answers an address that is a multiple of 256, and the memory keeps its content",
            "TensorFlow divides memory at multiples of 256 from there";
        allocations_do_not_overlap = memory::no_overlap,
            "No two allocations overlap",
            "tensors would change each other";
        allocations_keep_their_content = memory::content_is_kept,
            "Memory keeps its content while other memory is allocated and freed",
            "variables stay for hours";
        too_much_is_refused = memory::too_much,
            "`allocate` of more than there is answers nothing, and the device works on",
            "TensorFlow requests less then, or raises ResourceExhaustedError";
        freed_memory_comes_back = memory::freed_memory_comes_back,
            "What is freed can be allocated again, more often than there is memory",
            "TensorFlow gives regions back for larger ones";
        usage_counts_allocations = memory::usage_counts,
            "`device_memory_usage`, if it counts, has less free while memory is allocated",
            "TensorFlow takes what it says is free";
        parts_of_a_region = memory::parts_of_a_region,
            "Addresses within an allocation work as its start does",
            "nearly every address that TensorFlow passes is within a region";
        host_memory_of_1_byte = |run| memory::of_the_host(run, 1),
            "`host_memory_allocate` of 1 byte answers memory that is aligned to 64 bytes",
            "kernels on the host use vector instructions on it";
        host_memory_of_64_bytes = |run| memory::of_the_host(run, 64),
            "`host_memory_allocate` of 64 bytes answers memory that is aligned to 64 bytes",
            "kernels on the host use vector instructions on it";
        host_memory_of_4_kib = |run| memory::of_the_host(run, 4096),
            "`host_memory_allocate` of 4 KiB answers memory that is aligned to 64 bytes",
            "kernels on the host use vector instructions on it";
        host_memory_of_1_mib = |run| memory::of_the_host(run, 1 << 20),
            "`host_memory_allocate` of 1 MiB answers memory that is aligned to 64 bytes",
            "kernels on the host use vector instructions on it";
    }
    Copies "Copies" {
        stream_copy_to_device_of_1_byte = |run| copies::copy(run, Way::StreamToDevice, 1, 0),
            "`memcpy_htod` of 1 byte copies all of it, and nothing else changes",
            "every tensor gets to the device by it";
        stream_copy_to_device_of_3_bytes = |run| copies::copy(run, Way::StreamToDevice, 3, 0),
            "`memcpy_htod` of 3 bytes copies all of it, and nothing else changes",
            "every tensor gets to the device by it";
        stream_copy_to_device_of_4_kib = |run| copies::copy(run, Way::StreamToDevice, 4096, 0),
            "`memcpy_htod` of 4 KiB copies all of it, and nothing else changes",
            "every tensor gets to the device by it";
        stream_copy_to_device_of_1_mib_and_1 = |run| copies::copy(run, Way::StreamToDevice, (1 << 20) + 1, 0),
            "`memcpy_htod` of 1 MiB and a byte copies all of it, and nothing else changes",
            "every tensor gets to the device by it";
        stream_copy_to_device_at_an_odd_address = |run| copies::copy(run, Way::StreamToDevice, 1001, 3),
            "`memcpy_htod` copies also where the address is odd",
            "TensorFlow slices tensors of single bytes";
        stream_copy_to_host_of_1_byte = |run| copies::copy(run, Way::StreamToHost, 1, 0),
            "`memcpy_dtoh` of 1 byte copies all of it, and nothing else changes",
            "every value that Python sees comes by it";
        stream_copy_to_host_of_3_bytes = |run| copies::copy(run, Way::StreamToHost, 3, 0),
            "`memcpy_dtoh` of 3 bytes copies all of it, and nothing else changes",
            "every value that Python sees comes by it";
        stream_copy_to_host_of_4_kib = |run| copies::copy(run, Way::StreamToHost, 4096, 0),
            "`memcpy_dtoh` of 4 KiB copies all of it, and nothing else changes",
            "every value that Python sees comes by it";
        stream_copy_to_host_of_1_mib_and_1 = |run| copies::copy(run, Way::StreamToHost, (1 << 20) + 1, 0),
            "`memcpy_dtoh` of 1 MiB and a byte copies all of it, and nothing else changes",
            "every value that Python sees comes by it";
        stream_copy_to_host_at_an_odd_address = |run| copies::copy(run, Way::StreamToHost, 1001, 3),
            "`memcpy_dtoh` copies also where the address is odd",
            "TensorFlow slices tensors of single bytes";
        stream_copy_on_device_of_1_byte = |run| copies::copy(run, Way::StreamOnDevice, 1, 0),
            "`memcpy_dtod` of 1 byte copies all of it, and nothing else changes",
            "TensorFlow copies variables and lists by it";
        stream_copy_on_device_of_3_bytes = |run| copies::copy(run, Way::StreamOnDevice, 3, 0),
            "`memcpy_dtod` of 3 bytes copies all of it, and nothing else changes",
            "TensorFlow copies variables and lists by it";
        stream_copy_on_device_of_4_kib = |run| copies::copy(run, Way::StreamOnDevice, 4096, 0),
            "`memcpy_dtod` of 4 KiB copies all of it, and nothing else changes",
            "TensorFlow copies variables and lists by it";
        stream_copy_on_device_of_1_mib_and_1 = |run| copies::copy(run, Way::StreamOnDevice, (1 << 20) + 1, 0),
            "`memcpy_dtod` of 1 MiB and a byte copies all of it, and nothing else changes",
            "TensorFlow copies variables and lists by it";
        stream_copy_on_device_at_an_odd_address = |run| copies::copy(run, Way::StreamOnDevice, 1001, 3),
            "`memcpy_dtod` copies also where the address is odd",
            "TensorFlow slices tensors of single bytes";
        sync_copy_to_device_of_1_byte = |run| copies::copy(run, Way::SyncToDevice, 1, 0),
            "`sync_memcpy_htod` of 1 byte copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_to_device_of_3_bytes = |run| copies::copy(run, Way::SyncToDevice, 3, 0),
            "`sync_memcpy_htod` of 3 bytes copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_to_device_of_4_kib = |run| copies::copy(run, Way::SyncToDevice, 4096, 0),
            "`sync_memcpy_htod` of 4 KiB copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_to_device_of_1_mib_and_1 = |run| copies::copy(run, Way::SyncToDevice, (1 << 20) + 1, 0),
            "`sync_memcpy_htod` of 1 MiB and a byte copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_to_device_at_an_odd_address = |run| copies::copy(run, Way::SyncToDevice, 1001, 3),
            "`sync_memcpy_htod` copies also where the address is odd",
            "TensorFlow slices tensors of single bytes";
        sync_copy_to_host_of_1_byte = |run| copies::copy(run, Way::SyncToHost, 1, 0),
            "`sync_memcpy_dtoh` of 1 byte copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_to_host_of_3_bytes = |run| copies::copy(run, Way::SyncToHost, 3, 0),
            "`sync_memcpy_dtoh` of 3 bytes copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_to_host_of_4_kib = |run| copies::copy(run, Way::SyncToHost, 4096, 0),
            "`sync_memcpy_dtoh` of 4 KiB copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_to_host_of_1_mib_and_1 = |run| copies::copy(run, Way::SyncToHost, (1 << 20) + 1, 0),
            "`sync_memcpy_dtoh` of 1 MiB and a byte copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_to_host_at_an_odd_address = |run| copies::copy(run, Way::SyncToHost, 1001, 3),
            "`sync_memcpy_dtoh` copies also where the address is odd",
            "TensorFlow slices tensors of single bytes";
        sync_copy_on_device_of_1_byte = |run| copies::copy(run, Way::SyncOnDevice, 1, 0),
            "`sync_memcpy_dtod` of 1 byte copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_on_device_of_3_bytes = |run| copies::copy(run, Way::SyncOnDevice, 3, 0),
            "`sync_memcpy_dtod` of 3 bytes copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_on_device_of_4_kib = |run| copies::copy(run, Way::SyncOnDevice, 4096, 0),
            "`sync_memcpy_dtod` of 4 KiB copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_on_device_of_1_mib_and_1 = |run| copies::copy(run, Way::SyncOnDevice, (1 << 20) + 1, 0),
            "`sync_memcpy_dtod` of 1 MiB and a byte copies all of it, and nothing else changes",
            "plugins of others and older releases call it";
        sync_copy_on_device_at_an_odd_address = |run| copies::copy(run, Way::SyncOnDevice, 1001, 3),
            "`sync_memcpy_dtod` copies also where the address is odd",
            "TensorFlow slices tensors of single bytes";
    }
    Fills "Fills" {
        fill_with_zero_1_byte = |run| copies::fill(run, Pattern::Zero, 1),
            "`mem_zero` fills 1 byte, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_zero_3_bytes = |run| copies::fill(run, Pattern::Zero, 3),
            "`mem_zero` fills 3 bytes, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_zero_4_kib = |run| copies::fill(run, Pattern::Zero, 4096),
            "`mem_zero` fills 4 KiB, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_zero_1_mib_and_4 = |run| copies::fill(run, Pattern::Zero, (1 << 20) + 4),
            "`mem_zero` fills 1 MiB and 4 bytes, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_bytes_1_byte = |run| copies::fill(run, Pattern::Byte(0x5c), 1),
            "`memset` fills 1 byte, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_bytes_3_bytes = |run| copies::fill(run, Pattern::Byte(0x5c), 3),
            "`memset` fills 3 bytes, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_bytes_4_kib = |run| copies::fill(run, Pattern::Byte(0x5c), 4096),
            "`memset` fills 4 KiB, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_bytes_1_mib_and_4 = |run| copies::fill(run, Pattern::Byte(0x5c), (1 << 20) + 4),
            "`memset` fills 1 MiB and 4 bytes, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_words_4_bytes = |run| copies::fill(run, Pattern::Word(0x0102_0304), 4),
            "`memset32` fills 4 bytes, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_words_4_kib = |run| copies::fill(run, Pattern::Word(0x0102_0304), 4096),
            "`memset32` fills 4 KiB, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
        fill_with_words_1_mib_and_4 = |run| copies::fill(run, Pattern::Word(0x0102_0304), (1 << 20) + 4),
            "`memset32` fills 1 MiB and 4 bytes, all of it and nothing else",
            "TensorFlow makes zeros of variables and gradients by it";
    }
    Order "Order of work" {
        a_stream_works_in_order = order::in_order,
            "Work in one stream is done in order",
            "TensorFlow waits for nothing between ops of one stream";
        block_host_until_done_waits = order::synchronize_waits,
            "After `block_host_until_done` the work of the stream is done",
            "the host reads results then";
        synchronize_waits_for_all_streams = order::the_device_waits_for_all,
            "After `synchronize_all_activity` the work of all streams is done",
            "it runs whenever Python fetches a value";
        a_stream_waits_for_another = order::behind_a_stream,
            "`create_stream_dependency` makes later work wait for what is in the other stream",
            "copies to the device and kernels are in different streams";
        a_stream_waits_for_an_event = order::behind_an_event,
            "`wait_for_event` makes later work wait for the event",
            "copies between devices wait for events";
        a_stream_waits_for_a_chain = order::behind_a_chain,
            "Work waits for a stream that waits for another",
            "dependencies are not only between two";
        a_stream_waits_for_itself = order::behind_itself,
            "A stream that waits for itself goes on",
            "TensorFlow does not look whether two streams are the same";
        two_streams_wait_for_each_other = order::only_what_is_there,
            "Two streams that wait for each other go on: each waits for what was there",
            "TensorFlow makes such pairs for copies there and back";
        work_outlives_its_stream = order::work_outlives_its_stream,
            "Destroying a stream does not stop its work",
            "TensorFlow destroys streams without waiting";
        many_streams = order::many_streams,
            "Hundreds of streams can be made and destroyed one after the other",
            "a leak shows after hours";
        stream_status_is_good = order::status_is_good,
            "`get_stream_status` of a stream that works is OK, while it is busy too",
            "TensorFlow ends work on a stream whose status is not OK";
    }
    Events "Events" {
        event_never_recorded = order::never_recorded,
            "An event that was never recorded is complete, and whoever waits for it goes on",
            "TensorFlow polls such events";
        event_that_is_polled = order::polled,
            "When an event is complete, the work before its latest record is done",
            "TensorFlow frees and reads memory then";
        event_that_is_waited_for = order::waited_for,
            "After `block_host_for_event` the work before the latest record is done",
            "TensorFlow frees and reads memory then";
        event_is_complete_at_last = order::complete_at_last,
            "An event that is recorded is complete at last, each of many times",
            "TensorFlow polls forever";
        event_moves_to_another_stream = order::recorded_in_two_streams,
            "An event that is recorded in a second stream says how far that one is",
            "TensorFlow has a pool of events";
        event_outlives_its_stream = order::event_outlives_its_stream,
            "An event says how far the work is also after its stream was destroyed",
            "TensorFlow destroys them in any order";
        event_destroyed_while_pending = order::destroyed_while_pending,
            "An event can be destroyed before it is complete",
            "TensorFlow destroys them in any order";
        many_events = order::many_events,
            "A thousand events can be pending",
            "TensorFlow has one for each tensor that is not freed yet";
    }
    Callbacks "Host callbacks" {
        callback_is_made_once = order::called_once,
            "A host callback is made once, with the status OK",
            "a second call is of freed memory, and a missing one waits forever";
        callback_is_made_in_order = order::called_in_order,
            "A host callback is made when the work before it is done",
            "TensorFlow frees what the work uses";
    }
    Timers "Timers" {
        timer_measures = order::timer_measures,
            "A timer measures the time between two points in a stream; before that it is at 0",
            "TensorFlow 2.12 and 2.13 choose algorithms by it";
        timer_measures_again = order::timer_measures_again,
            "A timer can be started again",
            "TensorFlow 2.12 and 2.13 use a timer more than once";
    }
    Threads "Many threads" {
        threads_with_their_own_streams = threads::streams_of_their_own,
            "Eight threads use a stream each",
            "TensorFlow calls from as many threads as there are cores";
        threads_with_one_stream = threads::one_stream,
            "Eight threads use one stream",
            "all kernels of a device share one stream";
        threads_that_allocate = threads::memory,
            "Eight threads allocate and free",
            "TensorFlow calls from as many threads as there are cores";
        threads_that_make_streams = threads::making_and_destroying,
            "Eight threads make and destroy streams and events",
            "TensorFlow calls from as many threads as there are cores";
        threads_that_synchronize = threads::synchronizing,
            "Eight threads wait for the whole device, each after work of its own",
            "each Python thread that fetches a value does";
    }
    Random "Random work" {
        random_work = threads::random,
            "Random work in three streams that wait for each other leaves the memory that a model has",
            "what nobody thought of";
    }
}
