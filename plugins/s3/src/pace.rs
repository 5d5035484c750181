//! How often requests are sent with `retry_mode=adaptive`: less often after the store was overloaded.

use std::sync::PoisonError;
use std::time::Duration;
use tf_fs_plugin::sync::Mutex;
use tokio::time::Instant;

/// What is left of the rate after an overload.
const KEPT: f64 = 0.7;
/// By how much a success raises the rate.
const RAISED: f64 = 1.05;
/// Requests a second: the fewest, and those from which on there is no limit.
const FEWEST: f64 = 0.5;
const MOST: f64 = 1000.0;

/// The pace of the requests of a bucket, reads of objects excepted.
#[derive(Debug)]
pub(crate) struct Pace(Option<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Requests a second; `None`: without a limit.
    rate: Option<f64>,
    /// When the next request may be sent.
    next: Instant,
    /// When the current second began, and the requests in it and in the one before.
    second: Instant,
    sent: [u32; 2],
}

impl Pace {
    pub(crate) fn new(is_adaptive: bool) -> Self {
        let now = Instant::now();
        let state = State { rate: None, next: now, second: now, sent: [0; 2] };
        Self(is_adaptive.then(|| Mutex::new(state)))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        let state = self.0.as_ref()?;
        Some(change(&mut state.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Waits until a request may be sent.
    pub(crate) async fn wait(&self) {
        let at = self.with(|state| {
            let now = Instant::now();
            if now - state.second >= Duration::from_secs(1) {
                (state.second, state.sent) = (now, [0, state.sent[0]]);
            }
            state.sent[0] += 1;
            let rate = state.rate?;
            let at = state.next.max(now);
            state.next = at + Duration::from_secs_f64(1.0 / rate);
            Some(at)
        });
        if let Some(Some(at)) = at {
            tokio::time::sleep_until(at).await;
        }
    }

    /// Records that the store was overloaded.
    pub(crate) fn overloaded(&self) {
        self.with(|state| {
            let measured = f64::from(state.sent[0].max(state.sent[1]));
            let before = state.rate.unwrap_or(measured).min(measured.max(FEWEST));
            state.rate = Some((before * KEPT).max(FEWEST));
        });
    }

    /// Records that the store responded as it should.
    pub(crate) fn succeeded(&self) {
        self.with(|state| state.rate = state.rate.map(|rate| rate * RAISED).filter(|&r| r < MOST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_overloaded_store_gets_fewer_requests_for_a_while() {
        let took = async |pace: &Pace| {
            let start = Instant::now();
            for _ in 0..10 {
                pace.wait().await;
            }
            start.elapsed()
        };
        let pace = Pace::new(true);
        assert_eq!(took(&pace).await, Duration::ZERO);
        pace.overloaded();
        // Seven a second.
        assert!((1000..1500).contains(&took(&pace).await.as_millis()));
        for _ in 0..150 {
            pace.succeeded();
        }
        assert!(took(&pace).await < Duration::from_millis(10));
        let off = Pace::new(false);
        off.overloaded();
        assert_eq!(took(&off).await, Duration::ZERO);
    }
}
