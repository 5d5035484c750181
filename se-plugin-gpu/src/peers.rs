//! The GPUs of a process, which copy to each other: directly where their driver does it, or else through the host.

use crate::address_map::AddressMap;
use crate::backend::{Batch, Buffer, BufferSlice, Gpu};
use crate::health::Health;
use se_plugin::{DevicePtr, Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How often memory is allocated again whose addresses another GPU has too.
const TRIES: usize = 16;

/// The bytes of a piece of a copy.
const PIECE: u64 = 4 << 20;

/// What other GPUs need of one.
pub(crate) struct Peer {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) health: Arc<Health>,
    pub(crate) address_map: Arc<AddressMap>,
    /// A batch for copies that are not ordered with any stream.
    direct: Mutex<Batch>,
}

impl Peer {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            gpu: Arc::clone(gpu),
            health: Arc::new(Health::new(gpu)),
            address_map: Arc::default(),
            direct: Mutex::new(Batch::new(gpu)?),
        }))
    }

    pub(crate) fn direct(&self) -> Result<MutexGuard<'_, Batch>> {
        self.gpu.check_process()?;
        Ok(self.direct.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The GPUs of a platform that are in use.
#[derive(Default)]
pub(crate) struct Peers(Mutex<Vec<Weak<Peer>>>);

impl Peers {
    fn all(&self) -> MutexGuard<'_, Vec<Weak<Peer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, peer: &Arc<Peer>) {
        self.all().push(Arc::downgrade(peer));
    }

    /// Allocates memory of a GPU at addresses that no other one has: an address alone says whose it is. GPUs with addresses of
    /// their own may have the same, as those of Vulkan.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough memory, or at such addresses.
    pub(crate) fn allocate(&self, peer: &Arc<Peer>, bytes: u64) -> Result<DevicePtr> {
        // Kept until another one is found, so that the driver does not return it again.
        let mut shared = Vec::new();
        while shared.len() < TRIES {
            let buffer = Buffer::local(&peer.gpu, bytes)?;
            // One at a time, from the question to the answer.
            let all = self.all();
            let mut others = all.iter().filter_map(Weak::upgrade);
            let others = others
                .any(|other| !Arc::ptr_eq(&other, peer) && other.address_map.overlaps(&buffer));
            if !others {
                return peer.address_map.add(buffer);
            }
            drop(all);
            shared.push(buffer);
        }
        Err(Error::resource_exhausted(format!(
            "cannot allocate {bytes} bytes on `{}` at addresses that no other GPU has; name one GPU with {}_DEVICE_NAME",
            peer.gpu.name, peer.gpu.prefix
        )))
    }

    /// Finds a range of memory of any GPU.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not within one allocation.
    fn find(&self, op: &str, address: DevicePtr, bytes: u64) -> Result<(Arc<Peer>, BufferSlice)> {
        let all: Vec<_> = self.all().iter().filter_map(Weak::upgrade).collect();
        let mut found = Err(Error::invalid_argument(format!("`{op}`: there is no device")));
        for peer in all {
            found = peer.address_map.find(op, address, bytes).map(|slice| (peer, slice));
            if found.is_ok() {
                break;
            }
        }
        found
    }

    /// Finds the ranges of a copy between two GPUs.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if one is not within one allocation.
    pub(crate) fn copy(
        &self,
        target: DevicePtr,
        source: DevicePtr,
        bytes: u64,
    ) -> Result<CopyAcross> {
        let (to, target) = self.find("copy_on_device", target, bytes)?;
        let (from, source) = self.find("copy_on_device", source, bytes)?;
        Ok(CopyAcross { from, source, to, target, bytes })
    }
}

/// A copy from a GPU to another one.
pub(crate) struct CopyAcross {
    from: Arc<Peer>,
    source: BufferSlice,
    to: Arc<Peer>,
    target: BufferSlice,
    bytes: u64,
}

impl CopyAcross {
    /// Copies, and waits for it. The stream has waited for the work that wrote the source.
    ///
    /// An error of the target is noted there: the source can be used further.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn run(&self) -> Result<()> {
        self.from.health.check()?;
        match self.copy_directly() {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                self.to.health.note(error);
                return Ok(());
            }
        }
        let mut start = 0;
        while start < self.bytes {
            let bytes = (self.bytes - start).min(PIECE);
            let piece = {
                let mut batch = self.from.direct()?;
                let staged = batch.download(&self.source.at(start), bytes as usize)?;
                batch.flush()?;
                // Not two batches at once: another copy may go the other way.
                batch.staged(staged).to_vec()
            };
            if let Err(error) = self.put(start, &piece) {
                self.to.health.note(error);
                return Ok(());
            }
            start += bytes;
        }
        Ok(())
    }

    /// Returns `false` if the driver has no such copy.
    fn copy_directly(&self) -> Result<bool> {
        let mut batch = self.to.direct()?;
        let (target, source) = (&self.target, &self.source);
        let is_recorded = batch.copy_from_peer(target, &self.from.gpu, source, self.bytes)?;
        batch.flush()?;
        Ok(is_recorded)
    }

    fn put(&self, start: u64, piece: &[u8]) -> Result<()> {
        let mut batch = self.to.direct()?;
        batch.upload(&self.target.at(start), piece.len(), |to| to.copy_from_slice(piece))?;
        batch.flush()
    }
}
