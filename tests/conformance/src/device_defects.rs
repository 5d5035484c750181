//! The defects of devices.

/// Passes the defects of devices to a macro: name, what is wrong, and the case that must find it.
///
/// A list of tokens, because the test makes an enum of the names and the book's crate a table of the texts.
#[macro_export]
macro_rules! device_defects {
    ($list:ident) => {
        $list! {
            CopyToDeviceShort "a copy to the device loses the last byte" => stream_copy_to_device_of_4_kib,
            CopyToHostShort "a copy to the host loses the last byte" => stream_copy_to_host_of_4_kib,
            CopyOnDeviceShort "a copy within the device loses the last byte" => stream_copy_on_device_of_4_kib,
            CopyOnDeviceInSteps "a copy within the device starts at a multiple of 256" => stream_copy_on_device_at_an_odd_address,
            SyncToDeviceShort "a synchronous copy to the device loses what is over a multiple of 4" => sync_copy_to_device_of_3_bytes,
            SyncToHostShort "a synchronous copy to the host loses the last byte" => sync_copy_to_host_of_1_byte,
            SyncOnDeviceFar "a synchronous copy within the device copies a byte too many" => sync_copy_on_device_of_1_mib_and_1,
            OneStagingBuffer "all copies to the host go through one buffer" => threads_with_their_own_streams,
            FillShort "a fill leaves out what is over a multiple of 4" => fill_with_bytes_3_bytes,
            FillFar "a fill goes 4 bytes too far" => fill_with_words_4_kib,
            FillLowByte "a fill with words repeats the lowest byte" => fill_with_words_4_bytes,
            ZeroNothing "filling with zeros does nothing" => fill_with_zero_4_kib,
            FillAtOnce "a fill does not wait for its turn" => a_stream_works_in_order,
            Misaligned "memory is at multiples of 64" => allocate_256_bytes,
            MemoryTwice "memory is given away while it is in use" => allocations_do_not_overlap,
            MemoryLeaks "freed memory is never used again" => freed_memory_comes_back,
            DeallocatePanics "freeing memory panics when it is done" => allocations_keep_their_content,
            OneAddressSpace "two devices have the same addresses" => devices_have_their_own_addresses,
            LittleForMuch "a request for too much gets a little" => too_much_is_refused,
            FreeAboveTotal "more memory is free than there is" => memory_usage,
            UsageOnlyFalls "memory that was freed stays counted" => usage_counts_allocations,
            StatsForget "the statistics do not know what is in use" => allocator_stats,
            NoStreamWait "a stream does not wait for another" => a_stream_waits_for_another,
            WaitIsNoWork "a stream that waits for another is done at once" => a_stream_that_only_waits_is_busy,
            NoEventWait "a stream does not wait for an event" => a_stream_waits_for_an_event,
            RecordNothing "recording an event does nothing" => event_that_is_waited_for,
            RecordOnce "only the first record of an event counts" => event_moves_to_another_stream,
            EventEarly "an event is always complete" => event_that_is_polled,
            EventNever "an event that was recorded stays pending" => event_is_complete_at_last,
            EventNoBlock "waiting for an event does not wait" => event_that_is_waited_for,
            StreamNoBlock "waiting for a stream does not wait" => block_host_until_done_waits,
            DeviceNoBlock "waiting for the device does not wait" => synchronize_waits_for_all_streams,
            CallbackDropped "host callbacks are dropped" => callback_is_made_once,
            CallbackEarly "a host callback does not wait for its turn" => callback_is_made_in_order,
            CallbacksSwapped "each second host callback is called before the first" => callbacks_are_made_in_order,
            CallbackOnCaller "a host callback is called on the thread that enqueues it" => callback_is_made_on_another_thread,
            CallbackBeside "later work does not wait for a host callback" => work_waits_for_a_callback,
            TimerZero "a timer stays at 0" => timer_measures_again,
            TimerRuns "a timer runs before it is started" => timer_measures,
            StreamsRunOut "there are 100 streams in all" => many_streams,
            StatusBusy "the status of a busy stream is an error" => stream_status_is_good,
            NotANumber "the number of operations is not a number" => figures,
            PciShort "the PCI address lacks its domain" => pci_bus_id,
            NoVendor "the vendor is an empty text" => vendor,
        }
    };
}
