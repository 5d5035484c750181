//! A case, and what it is about.

case_type! {
    /// One test case for a device. All are in [`cases`](crate::device::cases).
}

groups! {
    Loading "Loading",
    Description "What a device says of itself",
    Memory "Memory",
    Copies "Copies",
    Fills "Fills",
    Order "Order of work",
    Events "Events",
    Callbacks "Host callbacks",
    Timers "Timers",
    Threads "Many threads",
    Random "Random work",
}
