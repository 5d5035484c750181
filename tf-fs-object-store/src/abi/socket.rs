//! An option of sockets that no crate has a safe call for.

use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU8, Ordering};

/// Makes a socket readable only once it has this many bytes, or has ended or failed (`SO_RCVLOWAT`, `socket(7)`).
/// Returns whether the option is set. The system may wake readers with fewer bytes.
pub(crate) fn set_low_water_mark(socket: BorrowedFd<'_>, bytes: usize) -> bool {
    if !has_low_water_marks() {
        return false;
    }
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is borrowed, so it is open, and the option's value is a `c_int` that lives on the stack
    // until the call returns; its length goes with it.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
    outcome == 0
}

/// Returns whether the system wakes readers when a socket's mark is lowered, and when its buffer is full below the
/// mark: Linux since 5.12. Before 4.18 they would wait for ever.
pub(crate) fn has_low_water_marks() -> bool {
    // No lock: a child that is forked while another thread holds it would wait for ever. Two threads may both find out.
    static HAS: AtomicU8 = AtomicU8::new(UNKNOWN);
    const UNKNOWN: u8 = 2;
    match HAS.load(Ordering::Relaxed) {
        UNKNOWN => {
            let release = rustix::system::uname();
            let has =
                cfg!(target_os = "linux") && is_since_5_12(&release.release().to_string_lossy());
            HAS.store(u8::from(has), Ordering::Relaxed);
            has
        }
        known => known == 1,
    }
}

fn is_since_5_12(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (5, 12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    #[test]
    fn releases() {
        assert!(["5.12", "5.15.0-91-generic", "6.1.0", "10.0"].into_iter().all(is_since_5_12));
        let old = ["5.11.9", "4.4.0", "3.10.0-1160.el7.x86_64", "5", "", "x.5.12"];
        assert!(!old.into_iter().any(is_since_5_12));
    }

    #[tokio::test]
    async fn a_socket_is_readable_with_so_many_bytes_and_at_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut theirs, _) = listener.accept().await.unwrap();
        if !set_low_water_mark(ours.as_fd(), 1000) {
            assert!(!has_low_water_marks());
            return;
        }
        let is_readable = async |limit| timeout(limit, ours.readable()).await.is_ok();
        let (soon, ever) = (Duration::from_millis(100), Duration::from_secs(20));
        theirs.write_all(&[1; 999]).await.unwrap();
        assert!(!is_readable(soon).await);
        theirs.write_all(&[1]).await.unwrap();
        assert!(is_readable(ever).await);
        let mut bytes = [0; 2000];
        assert_eq!(ours.try_read(&mut bytes).unwrap(), 1000);
        assert!(ours.try_read(&mut bytes).is_err());
        // Bytes that are there already count as soon as they are enough.
        theirs.write_all(&[2; 10]).await.unwrap();
        assert!(!is_readable(soon).await);
        set_low_water_mark(ours.as_fd(), 1);
        assert!(is_readable(ever).await);
        assert_eq!(ours.try_read(&mut bytes).unwrap(), 10);
        set_low_water_mark(ours.as_fd(), 1000);
        assert!(ours.try_read(&mut bytes).is_err());
        drop(theirs);
        assert!(is_readable(ever).await);
    }
}
