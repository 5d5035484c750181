//! Copies of files on a server that does not copy: the bytes go through this process.

use crate::service::{Service, Sink, missing};
use bytes::{BufMut as _, BytesMut};
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{Body as _, GetOptions, Name, Range, StoreError as _, temporary_name};

/// Bytes that are read and written at a time.
const PIECE: usize = 1 << 20;

/// Copies a file to one that is replaced when the copy is complete.
pub(crate) async fn copy_through(
    service: &dyn Service,
    from: &str,
    to: &Name,
) -> Result<(), HttpError> {
    let found = service.stat(from).await?.filter(|entry| !entry.is_directory);
    let size = found.ok_or_else(missing)?.meta.size.unwrap_or(0);
    let temporary = temporary_name(to).key;
    let mut sink = service.start(&temporary).await?;
    let copied = match send(service, from, size, &mut *sink).await {
        Ok(()) => sink.commit().await.map(drop),
        Err(error) => {
            // The error is that of the copy.
            let _ = sink.abort().await;
            Err(error)
        }
    };
    copied?;
    let renamed = service.rename(&temporary, &to.key, false).await;
    if renamed.is_err() {
        let _ = service.delete(&temporary, false).await;
    }
    renamed
}

async fn send(
    service: &dyn Service,
    from: &str,
    size: u64,
    sink: &mut dyn Sink,
) -> Result<(), HttpError> {
    if size == 0 {
        return Ok(());
    }
    let (_, mut body) = service.read(GetOptions::new(from, Range::new(0, size))).await?;
    let mut left = size;
    while left > 0 {
        let room = PIECE.min(usize::try_from(left).unwrap_or(PIECE));
        let mut piece = BytesMut::with_capacity(room).limit(room);
        while piece.remaining_mut() > 0 {
            if body.fill(&mut piece).await? == 0 {
                return Err(HttpError::invalid("the file became shorter while it was copied"));
            }
        }
        left -= room as u64;
        sink.append(&[piece.into_inner().freeze()]).await?;
    }
    Ok(())
}
