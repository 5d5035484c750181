//! Chooses a GPU, and opens it.

use super::erased::{Driver, Erased};
use super::interface::{Backend, Found, Opened};
use super::operations::CooperativeMatrix;
use crate::settings::Settings;
use se_plugin::{Error, Result};
use std::fmt;

/// An open GPU of any backend.
pub struct OpenedGpu {
    pub(super) driver: Box<dyn Driver>,
    pub(super) name: String,
    pub(super) driver_info: String,
    pub(super) total: u64,
    pub(super) cooperative: Option<CooperativeMatrix>,
    pub(super) is_software: bool,
    /// See [`Backend::SOFTWARE_TURNS`].
    pub(super) most_turns: Option<usize>,
}

impl OpenedGpu {
    /// Returns the name that the driver reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for OpenedGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedGpu").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Opens the GPUs of a backend that the settings name, or else those that are not software. A warning says why one of them
/// cannot be used, if another one can.
///
/// # Errors
/// Those of [`Backend::list`]; `NOT_FOUND` without such a GPU, with a reason for each GPU.
pub fn open<B: Backend>(settings: &Settings) -> Result<Vec<OpenedGpu>> {
    let wanted = settings.device_name.as_deref();
    let setting = settings.name("DEVICE_NAME");
    let (mut all, mut refused, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for Found { name, is_software, physical_device } in B::list()? {
        let is_named = wanted.map(|part| name.to_lowercase().contains(&part.to_lowercase()));
        let is_wanted = is_named.unwrap_or(!is_software);
        let reason = match (is_named, physical_device) {
            (Some(false), _) => format!("{setting} does not name it"),
            (None, _) if is_software => format!("it is software; {setting} can name it"),
            (_, Err(reason)) => reason,
            (_, Ok(physical_device)) => match B::open(physical_device, settings) {
                Ok(Opened { backend, driver_info, total, cooperative }) => {
                    let driver = Box::new(Erased::new(backend));
                    let most_turns = B::SOFTWARE_TURNS.filter(|_| is_software);
                    all.push(OpenedGpu {
                        driver,
                        name,
                        driver_info,
                        total,
                        cooperative,
                        is_software,
                        most_turns,
                    });
                    continue;
                }
                Err(error) => error.message().to_owned(),
            },
        };
        let reason = format!("`{name}`: {reason}");
        refused.extend(is_wanted.then(|| reason.clone()));
        reasons.push(reason);
    }
    if !all.is_empty() {
        for reason in refused {
            log::warn!("{} does not use {reason}", settings.prefix);
        }
        return Ok(all);
    }
    let (backend, reasons) = (B::NAME, reasons.join("; "));
    Err(Error::not_found(match wanted {
        _ if reasons.is_empty() => format!("{backend} finds no GPU; install the driver of the GPU"),
        Some(wanted) => format!(
            "{setting} is `{wanted}`, and no GPU can be used by {backend}: {reasons}; set it to a part of a GPU's name"
        ),
        None => format!(
            "no GPU can be used by {backend}: {reasons}; update the driver, or name a GPU with {setting}"
        ),
    }))
}

#[cfg(test)]
#[expect(unsafe_code, reason = "functions of backends")]
mod tests {
    use super::*;
    use crate::backend::{Allocation, BackendResult, MemoryKind, Shader, Span};
    use se_plugin::Code;
    use std::time::Duration;

    /// Finds software first, a GPU that lacks something, one that does not open, and a good one.
    struct Four;

    // SAFETY: nothing is allocated or sent.
    unsafe impl Backend for Four {
        const NAME: &'static str = "Four";
        type PhysicalDevice = bool;
        type Memory = ();
        type Program = ();
        type Batch = ();

        fn list() -> Result<Vec<Found<bool>>> {
            let found =
                |name: &str, is_software, physical_device: std::result::Result<bool, &str>| Found {
                    name: name.to_owned(),
                    is_software,
                    physical_device: physical_device.map_err(str::to_owned),
                };
            Ok(vec![
                found("llvmpipe", true, Ok(true)),
                found("Old", false, Err("its shaders cannot access bytes")),
                found("Broken", false, Ok(false)),
                found("Radeon", false, Ok(true)),
            ])
        }
        fn open(opens: bool, _: &Settings) -> Result<Opened<Self>> {
            match opens {
                true => Ok(Opened {
                    backend: Self,
                    driver_info: String::new(),
                    total: 1,
                    cooperative: None,
                }),
                false => Err(Error::internal("the driver is broken")),
            }
        }
        fn allocate(&self, _: u64, _: MemoryKind) -> BackendResult<Allocation<()>> {
            unreachable!()
        }
        unsafe fn free(&self, _: Allocation<()>) {}
        fn compile(&self, _: &Shader, _: &[u32]) -> BackendResult {
            unreachable!()
        }
        fn batch(&self) -> BackendResult {
            unreachable!()
        }
        unsafe fn copy(&self, (): &mut (), _: Span<'_, ()>, _: Span<'_, ()>) -> BackendResult {
            unreachable!()
        }
        unsafe fn fill(&self, (): &mut (), _: Span<'_, ()>, _: u32) -> BackendResult {
            unreachable!()
        }
        unsafe fn launch(&self, (): &mut (), (): &(), _: &[u8], _: [u32; 3]) -> BackendResult {
            unreachable!()
        }
        unsafe fn send(&self, (): &mut ()) -> BackendResult {
            unreachable!()
        }
        fn wait(&self, (): &mut (), _: Duration) -> BackendResult<bool> {
            unreachable!()
        }
    }

    fn opened(name: Option<&str>) -> Result<Vec<OpenedGpu>> {
        open::<Four>(&Settings { device_name: name.map(str::to_owned), ..Settings::new("MY_GPU") })
    }

    fn names(name: Option<&str>) -> Vec<String> {
        let opened = opened(name).unwrap();
        opened.iter().map(|gpu| gpu.name().to_owned()).collect()
    }

    #[test]
    fn all_gpus_that_can_be_used_are_opened() {
        assert_eq!(names(None), ["Radeon"]);
        // Software is opened if it is named.
        assert_eq!(names(Some("PIPE")), ["llvmpipe"]);
        assert!(opened(Some("PIPE")).unwrap()[0].is_software);
        assert_eq!(names(Some("")), ["llvmpipe", "Radeon"]);
    }

    #[test]
    fn the_error_names_each_gpu_and_what_it_lacks() {
        assert_eq!(names(Some("o")), ["Radeon"]);
        for (wanted, expected) in [
            (
                "old",
                "MY_GPU_DEVICE_NAME is `old`, and no GPU can be used by Four: `llvmpipe`: MY_GPU_DEVICE_NAME does not name it; \
                 `Old`: its shaders cannot access bytes; ",
            ),
            ("broken", "`Broken`: the driver is broken; "),
            (
                "arc",
                "`Radeon`: MY_GPU_DEVICE_NAME does not name it; set it to a part of a GPU's name",
            ),
        ] {
            let error = opened(Some(wanted)).unwrap_err();
            assert_eq!(error.code(), Code::NotFound);
            assert!(error.message().contains(expected), "{error}");
        }
    }
}
