//! The engine under object stores as TensorFlow filesystems: what every store needs and no protocol decides.
//!
//! `s3://` (`examples/s3`) is built on it. What is here so far is the bottom; its README lists what is still to come.
//!
//! | Module | Job |
//! |---|---|
//! | `process` | what belongs to one process, made again after a fork: worker threads, the memory budget |
//! | `budget` | memory for data on its way |
//! | `name` | a bucket and an exact key |
//! | `settings` | what can be set for a bucket |
//! | `retry` | how long a failing request is made again |
//! | `listings` | what listings showed a moment ago |
//! | `page`, `collect` | a page of a listing, and the directories made of its keys |
//! | `pending` | what this process has done and the store does not show |
//! | `buffer` | bytes that wait to be uploaded |
//! | [`metrics`] | what is counted |

#![forbid(unsafe_code)]

mod budget;
mod buffer;
mod collect;
mod listings;
pub mod metrics;
mod name;
mod page;
mod pending;
mod process;
mod retry;
mod settings;

pub use budget::{Budget, Reservation};
pub use buffer::{Buffer, Content};
pub use collect::{Collected, Tree};
pub use listings::{Began, Child, Found, Known, Listed, Listings};
pub use name::Name;
pub use page::{Object, Page, Query};
pub use pending::{Ours, Pending, PendingWrite, Unpublished};
pub use process::Process;
pub use retry::{
    BUFFERED, LONGEST_BACKOFF, LONGEST_RETRY_AFTER, Patience, WRONG_ANSWERS, backoff,
    longest_grace, longest_patience,
};
pub use settings::Settings;
