//! Latency and bandwidth of a slower network, applied to received and sent bytes.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How slow the network is; the default does not slow anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The time from the end of a request to the first byte of its response.
    pub first_byte_latency: Duration,
    /// Bytes per second of one connection, in each direction.
    pub bytes_per_second_per_connection: Option<u64>,
    /// Bytes per second of all connections together, in each direction.
    pub total_bytes_per_second: Option<u64>,
}

impl Shape {
    /// Returns the speed of one connection to S3: 30 ms to the first byte, 80 MB/s.
    pub fn s3() -> Shape {
        Shape {
            first_byte_latency: Duration::from_millis(30),
            bytes_per_second_per_connection: Some(80_000_000),
            ..Shape::default()
        }
    }
}

/// How far a pace may run ahead: timers are accurate to a millisecond.
const AHEAD: Duration = Duration::from_millis(2);
/// The most that idle time gives back.
const BURST: Duration = Duration::from_millis(4);
/// The most bytes sent at once while a pace is set.
const STEP: usize = 64 << 10;

/// A pace: when the next bytes may be sent.
#[derive(Debug)]
struct Pace(Mutex<Option<Instant>>);

impl Pace {
    const fn new() -> Pace {
        Pace(Mutex::new(None))
    }

    /// Returns when bytes may be sent next, if not now.
    fn wait(&self, now: Instant) -> Option<Instant> {
        let free = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.filter(|free| *free > now + AHEAD)
    }

    fn spend(&self, now: Instant, bytes: usize, rate: u64) {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        let from = free.map_or(earliest, |free| free.max(earliest));
        *free = Some(from + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64));
    }
}

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Network {
    shape: Mutex<Shape>,
    reads: Pace,
    writes: Pace,
}

impl Network {
    pub(crate) fn new(shape: Shape) -> Network {
        Network { shape: Mutex::new(shape), reads: Pace::new(), writes: Pace::new() }
    }

    pub(crate) fn shape(&self) -> Shape {
        *self.shape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, shape: Shape) {
        *self.shape.lock().unwrap_or_else(PoisonError::into_inner) = shape;
    }
}

/// The faults in the bytes of one connection, below HTTP.
#[derive(Debug, Default)]
pub(crate) struct Wire(Mutex<WireState>);

#[derive(Debug, Default)]
struct WireState {
    /// The next bytes are sent one by one, this far apart.
    trickle: Option<(usize, Duration)>,
    /// Text to replace in the next head.
    patch: Option<(Vec<u8>, Vec<u8>)>,
    /// After the next flush the connection looks closed by the peer.
    close: bool,
    flushed: bool,
}

impl Wire {
    fn with<T>(&self, work: impl FnOnce(&mut WireState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends the next `bytes` bytes one by one.
    pub(crate) fn trickle(&self, bytes: usize, every: Duration) {
        self.with(|state| state.trickle = Some((bytes, every)));
    }

    /// Replaces `from` with `to` in what is written next.
    pub(crate) fn patch(&self, from: impl Into<Vec<u8>>, to: impl Into<Vec<u8>>) {
        let patch = (from.into(), to.into());
        self.with(|state| state.patch = Some(patch));
    }

    /// Ends the connection once everything written is flushed.
    pub(crate) fn close_after_flush(&self) {
        self.with(|state| (state.close, state.flushed) = (true, false));
    }
}

/// A connection with the speed of the network.
pub(crate) struct Shaped<S> {
    inner: S,
    network: Arc<Network>,
    wire: Arc<Wire>,
    reads: Pace,
    writes: Pace,
    read_sleep: Option<Pin<Box<Sleep>>>,
    write_sleep: Option<Pin<Box<Sleep>>>,
    /// The bytes of a patch, in place of those that hyper takes for written.
    pending: Vec<u8>,
}

impl<S> Shaped<S> {
    pub(crate) fn new(inner: S, network: Arc<Network>, wire: Arc<Wire>) -> Shaped<S> {
        let (reads, writes) = (Pace::new(), Pace::new());
        Shaped {
            inner,
            network,
            wire,
            reads,
            writes,
            read_sleep: None,
            write_sleep: None,
            pending: Vec::new(),
        }
    }
}

fn sleep(slot: &mut Option<Pin<Box<Sleep>>>, until: Instant, cx: &mut Context<'_>) -> Poll<()> {
    let sleep = slot.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
    ready!(sleep.as_mut().poll(cx));
    *slot = None;
    Poll::Ready(())
}

impl<S: AsyncRead + Unpin> AsyncRead for Shaped<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.wire.with(|state| state.close && state.flushed) {
            return Poll::Ready(Ok(()));
        }
        let shape = this.network.shape();
        if shape.bytes_per_second_per_connection.is_none() && shape.total_bytes_per_second.is_none()
        {
            return Pin::new(&mut this.inner).poll_read(cx, buf);
        }
        loop {
            if let Some(pending) = &mut this.read_sleep {
                ready!(pending.as_mut().poll(cx));
                this.read_sleep = None;
            }
            let now = Instant::now();
            let wait = this.reads.wait(now).max(this.network.reads.wait(now));
            let Some(until) = wait else { break };
            ready!(sleep(&mut this.read_sleep, until, cx));
        }
        let want = buf.remaining().min(STEP);
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(want));
        ready!(Pin::new(&mut this.inner).poll_read(cx, &mut part))?;
        let n = part.filled().len();
        buf.advance(n);
        let now = Instant::now();
        if let Some(rate) = shape.bytes_per_second_per_connection {
            this.reads.spend(now, n, rate);
        }
        if let Some(rate) = shape.total_bytes_per_second {
            this.network.reads.spend(now, n, rate);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Shaped<S> {
    /// Sends the bytes that a patch has left over.
    fn poll_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            let n = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.pending))?;
            self.pending.drain(..n);
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until bytes may be sent. Returns how many, or `usize::MAX` without a limit.
    fn poll_turn(&mut self, cx: &mut Context<'_>, shape: &Shape) -> Poll<usize> {
        if let Some(pending) = &mut self.write_sleep {
            ready!(pending.as_mut().poll(cx));
            self.write_sleep = None;
        }
        if let Some(every) = self.wire.with(|state| {
            let (left, every) = state.trickle.as_mut()?;
            *left -= 1;
            let every = *every;
            if *left == 0 {
                state.trickle = None;
            }
            Some(every)
        }) {
            // The wait is after the byte: the next call begins with it.
            self.write_sleep = Some(Box::pin(tokio::time::sleep(every)));
            return Poll::Ready(1);
        }
        if shape.bytes_per_second_per_connection.is_none() && shape.total_bytes_per_second.is_none()
        {
            return Poll::Ready(usize::MAX);
        }
        loop {
            let now = Instant::now();
            let wait = self.writes.wait(now).max(self.network.writes.wait(now));
            let Some(until) = wait else { return Poll::Ready(STEP) };
            ready!(sleep(&mut self.write_sleep, until, cx));
        }
    }

    fn spent(&self, shape: &Shape, n: usize) {
        let now = Instant::now();
        if let Some(rate) = shape.bytes_per_second_per_connection {
            self.writes.spend(now, n, rate);
        }
        if let Some(rate) = shape.total_bytes_per_second {
            self.network.writes.spend(now, n, rate);
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Shaped<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_pending(cx))?;
        let patched = this.wire.with(|state| {
            state.flushed = false;
            let (from, to) = state.patch.as_ref()?;
            let at = buf.windows(from.len()).position(|window| window == from.as_slice())?;
            let patched = [&buf[..at], to, &buf[at + from.len()..]].concat();
            state.patch = None;
            Some(patched)
        });
        if let Some(patched) = patched {
            this.pending = patched;
            // The rest is sent before the next write or flush.
            if let Poll::Ready(Err(error)) = this.poll_pending(cx) {
                return Poll::Ready(Err(error));
            }
            return Poll::Ready(Ok(buf.len()));
        }
        let shape = this.network.shape();
        let most = ready!(this.poll_turn(cx, &shape)).min(buf.len());
        let n = ready!(Pin::new(&mut this.inner).poll_write(cx, &buf[..most]))?;
        this.spent(&shape, n);
        Poll::Ready(Ok(n))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let shape = this.network.shape();
        let plain = this.wire.with(|state| {
            state.flushed = false;
            state.trickle.is_none() && state.patch.is_none()
        }) && this.pending.is_empty()
            && this.write_sleep.is_none();
        if plain
            && shape.bytes_per_second_per_connection.is_none()
            && shape.total_bytes_per_second.is_none()
        {
            return Pin::new(&mut this.inner).poll_write_vectored(cx, bufs);
        }
        let first = bufs.iter().find(|buf| !buf.is_empty());
        self.poll_write(cx, first.map_or(&[], |buf| buf))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(cx))?;
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        if self.wire.with(|state| !std::mem::replace(&mut state.flushed, true) && state.close) {
            // hyper waits for the client's next bytes: it has to look again to see the end.
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
