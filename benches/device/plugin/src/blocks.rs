//! Which parts of the memory are allocated.

use se_plugin::AllocatorStats;

/// Allocations are multiples of this, in size and in place: what TensorFlow wants.
const GRAIN: u64 = 256;

/// Blocks whose sizes are powers of two, each put where one of its size was freed or behind all others.
pub(crate) struct Blocks {
    size: u64,
    end: u64,
    /// The power of two of each block, by its place.
    powers: Vec<u8>,
    /// Where blocks of each power of two are free.
    free: Vec<Vec<u64>>,
    in_use: u64,
    peak: u64,
    count: u64,
    largest: u64,
}

impl Blocks {
    pub(crate) fn new(size: u64) -> Self {
        let powers = vec![0; (size / GRAIN) as usize];
        let free = vec![Vec::new(); 64];
        Self { size, end: 0, powers, free, in_use: 0, peak: 0, count: 0, largest: 0 }
    }

    pub(crate) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let block = bytes.max(GRAIN).checked_next_power_of_two()?;
        let power = block.trailing_zeros();
        let at = match self.free[power as usize].pop() {
            Some(at) => at,
            None => {
                let at = self.end;
                self.end = at.checked_add(block).filter(|&end| end <= self.size)?;
                at
            }
        };
        self.powers[(at / GRAIN) as usize] = power as u8;
        self.in_use += block;
        self.peak = self.peak.max(self.in_use);
        self.largest = self.largest.max(bytes);
        self.count += 1;
        Some(at)
    }

    pub(crate) fn free(&mut self, at: u64) -> Option<()> {
        let place =
            self.powers.get_mut((at / GRAIN) as usize).filter(|_| at.is_multiple_of(GRAIN))?;
        let power = std::mem::take(place);
        if power == 0 {
            return None;
        }
        self.in_use -= 1 << power;
        self.free[usize::from(power)].push(at);
        Some(())
    }

    pub(crate) fn in_use(&self) -> u64 {
        self.in_use
    }

    pub(crate) fn stats(&self) -> AllocatorStats {
        AllocatorStats {
            allocations: self.count,
            in_use: self.in_use,
            peak_in_use: self.peak,
            largest_allocation: self.largest,
            limit: Some(self.size),
            reserved: self.end,
            peak_reserved: self.end,
            reservable_limit: None,
            largest_free_block: self.size - self.end,
        }
    }
}
