//! The amounts of work to measure.

/// The sizes of a run.
pub(crate) struct Sizes {
    pub(crate) rounds: usize,
    /// The bytes of a copy.
    pub(crate) copied: usize,
    /// The elements of an elementwise op.
    pub(crate) elements: usize,
    /// The rows, and columns, of a matrix.
    pub(crate) matrix: usize,
    /// How often a kernel runs in one measurement.
    pub(crate) times: usize,
    /// The launches of a small kernel.
    pub(crate) launches: usize,
    /// Whether the step is that of ResNet50; otherwise it has a few of its layers.
    pub(crate) is_whole_step: bool,
}

impl Sizes {
    pub(crate) fn of(is_quick: bool, is_software: bool) -> Self {
        match (is_quick, is_software) {
            (true, _) => Self::QUICK,
            (false, true) => Self::CPU,
            (false, false) => Self::GPU,
        }
    }

    /// The sizes for a GPU.
    const GPU: Self = Self {
        rounds: 15,
        copied: 256 << 20,
        elements: 64 << 20,
        matrix: 4096,
        times: 10,
        launches: 10_000,
        is_whole_step: true,
    };
    /// The sizes for the CPU, where a matrix product of 4096 rows takes minutes.
    const CPU: Self = Self {
        rounds: 31,
        copied: 64 << 20,
        elements: 4 << 20,
        matrix: 256,
        times: 5,
        launches: 2_000,
        is_whole_step: false,
    };
    /// The sizes of a dry run.
    const QUICK: Self = Self {
        rounds: 5,
        copied: 10 << 20,
        elements: 64 << 10,
        matrix: 64,
        times: 3,
        launches: 200,
        is_whole_step: false,
    };
}
