//! How much is measured.

/// Sizes of a run.
pub(crate) struct Sizes {
    pub(crate) rounds: usize,
    /// Bytes of a copy.
    pub(crate) copied: usize,
    /// Elements of an elementwise op.
    pub(crate) elements: usize,
    /// Rows, and columns, of a matrix.
    pub(crate) matrix: usize,
    /// How often a kernel runs between two looks at the clock.
    pub(crate) times: usize,
    /// Launches of a small kernel.
    pub(crate) launches: usize,
    /// Whether the step is that of ResNet50, or of a few of its layers.
    pub(crate) is_whole_step: bool,
}

impl Sizes {
    pub(crate) fn of(is_quick: bool, is_software: bool) -> Self {
        match (is_quick, is_software) {
            (true, _) => Self::QUICK,
            (false, true) => Self::PROCESSOR,
            (false, false) => Self::CARD,
        }
    }

    /// On a card.
    const CARD: Self = Self {
        rounds: 15,
        copied: 256 << 20,
        elements: 64 << 20,
        matrix: 4096,
        times: 10,
        launches: 10_000,
        is_whole_step: true,
    };
    /// On the processor, where a matrix product of 4096 rows takes minutes.
    const PROCESSOR: Self = Self {
        rounds: 31,
        copied: 64 << 20,
        elements: 4 << 20,
        matrix: 256,
        times: 5,
        launches: 2_000,
        is_whole_step: false,
    };
    /// A dry run.
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
