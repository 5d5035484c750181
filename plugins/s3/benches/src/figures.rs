//! What was measured, kept by row, network and client.

use std::collections::BTreeMap;

use crate::clients::Client;

/// How fast the network between client and server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// Loopback as it is.
    Loopback,
    /// 30 ms to the first byte of a response and 80 MB/s for each connection.
    Shaped,
}

/// One measurement, or many that ran at once: the figures are of one operation.
#[derive(Clone, Debug)]
pub struct Sample {
    /// On the clock.
    pub seconds: f64,
    /// That the threads of the client's process ran on a CPU.
    pub cpu: f64,
    /// Requests by operation of S3, of all the operations together.
    pub counts: BTreeMap<String, usize>,
    /// Requests of one operation.
    pub requests: f64,
    /// Bytes of bodies that the client sent, of one operation.
    pub sent: f64,
    /// Bytes of bodies that the client received, of one operation.
    pub received: f64,
    /// The most requests that were served at a time.
    pub peak_in_flight: usize,
    /// Whether a tenth was measured and multiplied.
    pub scaled: bool,
}

/// A median between the smallest and the largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The smallest.
    pub min: f64,
    /// The middle one; of an even number, the higher of the two.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Figure {
    /// Of some values, or of none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { min, median: sorted[sorted.len() / 2], max })
    }
}

/// All samples, and what went wrong.
#[derive(Debug, Default)]
pub struct Figures {
    samples: BTreeMap<(&'static str, Network, Client), Vec<Sample>>,
    /// Bytes of memory above what a fresh process held after its imports: its peak while a row ran.
    pub memory: BTreeMap<(&'static str, Network, Client), u64>,
    /// One line for each operation that failed.
    pub failures: Vec<String>,
}

impl Figures {
    /// Adds a sample of the row whose operation is `run`.
    pub fn add(&mut self, run: &'static str, network: Network, client: Client, sample: Sample) {
        self.samples.entry((run, network, client)).or_default().push(sample);
    }

    /// The samples of a row.
    #[must_use]
    pub fn samples(&self, run: &'static str, network: Network, client: Client) -> &[Sample] {
        self.samples.get(&(run, network, client)).map_or(&[], Vec::as_slice)
    }

    /// One figure over the samples of a row.
    #[must_use]
    pub fn figure(
        &self,
        run: &'static str,
        network: Network,
        client: Client,
        of: impl Fn(&Sample) -> f64,
    ) -> Option<Figure> {
        Figure::of(self.samples(run, network, client).iter().map(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_value_counts() {
        assert_eq!(Figure::of([]), None);
        let figure = Figure::of([5.0, 1.0, 3.0]).unwrap();
        assert_eq!(figure, Figure { min: 1.0, median: 3.0, max: 5.0 });
    }
}
