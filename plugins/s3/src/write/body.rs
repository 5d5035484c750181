//! Bodies of uploads in the form that the SDK accepts.

use aws_sdk_s3::primitives::{ByteStream, SdkBody};
use tf_fs_object_store::Content;
use tf_fs_object_store::http::Chunks;

/// Returns the body of a request, created again for each attempt.
pub(super) fn body(content: &Content) -> ByteStream {
    let content = content.clone();
    ByteStream::new(SdkBody::retryable(move || {
        SdkBody::from_body_1_x(Chunks::new(content.chunks().iter().cloned()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tf_fs_object_store::{Buffer, MemoryBudget};

    #[test]
    fn bodies_know_their_length_and_can_be_sent_again() {
        let budget = Arc::new(MemoryBudget::new(64 << 20));
        let mut buffer = Buffer::default();
        buffer.grow(200_000, budget.try_reserve(200_000).unwrap());
        buffer.append(&[3; 200_000]);
        let content = buffer.take();
        let sent = body(&content).into_inner();
        assert_eq!(sent.content_length(), Some(200_000));
        assert_eq!(sent.try_clone().unwrap().content_length(), Some(200_000));
        // Each attempt holds the content.
        drop(content);
        assert_ne!(budget.used(), 0);
        drop(sent);
        assert_eq!(budget.used(), 0);
    }
}
