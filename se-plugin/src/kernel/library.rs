//! Kernels of a library, which plugins register for their platforms.

use super::Kernel;
use crate::device::Device;
use crate::platform::Platform;
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;
use tf_op_plugin::__private::Registration;
use tf_plugin_core::{Error, Result};

/// A kernel for any platform within its bounds. [`#[kernel]`](macro@crate::kernel) implements it for an
/// `impl<P: Bound> Kernel for Op<P>` with `type Platform = P`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel for any platform",
    note = "write `#[kernel(op = \"...\")] impl<P: Platform> Kernel for ...` with `type Platform = P;`"
)]
pub trait LibraryKernel: Kernel {
    /// Adds a kernel for each combination of types that the attributes name.
    #[doc(hidden)]
    fn add_to(list: &mut KernelList);
}

/// The kernels of a library for one platform, which [`register_kernels!`](crate::register_kernels) registers.
#[derive(Debug, Default)]
pub struct KernelList(Vec<Registration>);

impl KernelList {
    /// Adds a kernel for all types that its `#[kernel]` names: a type parameter that stands for one of them can be any.
    pub fn add<K: LibraryKernel>(&mut self) {
        K::add_to(self);
    }

    /// Adds one registration.
    #[doc(hidden)]
    pub fn push(&mut self, registration: Registration) {
        self.0.push(registration);
    }

    /// Returns the op of each registration, one for each combination of types.
    pub fn ops(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|registration| registration.op)
    }
}

/// A function that lists kernels for a platform.
#[doc(hidden)]
#[derive(Debug)]
pub struct KernelGroup(pub fn(&mut KernelList));

impl KernelGroup {
    /// Adds the kernels to those of the plugin. This runs once, when the library is loaded.
    pub fn collect(&'static self) {
        let mut list = KernelList::default();
        (self.0)(&mut list);
        list.0.leak().iter().for_each(Registration::collect);
    }
}

/// Registers kernels of libraries for a platform of this crate.
///
/// Each path names a function `fn group<P: Bound>(list: &mut KernelList)` that [adds](KernelList::add) kernels; `Bound` is what
/// the library requires of a platform.
///
/// ```
/// use se_plugin::kernel::KernelList;
/// use se_plugin::prelude::*;
/// # use se_plugin::host::{HostDevice, HostMemory};
///
/// /// In a library: `NoOp` for any platform.
/// struct Nothing<P>(std::marker::PhantomData<fn() -> P>);
///
/// #[kernel(op = "NoOp")]
/// impl<P: Platform> Kernel for Nothing<P> {
///     type Platform = P;
///
///     fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
///         Ok(Self(std::marker::PhantomData))
///     }
///     fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
///         Ok(())
///     }
/// }
///
/// pub fn group<P: Platform>(list: &mut KernelList) {
///     list.add::<Nothing<P>>();
/// }
///
/// # struct MyPlatform;
/// # impl Platform for MyPlatform {
/// #     const NAME: &'static str = "MY_DEVICE";
/// #     const TYPE: &'static str = "MY_DEVICE";
/// #     type Device = HostDevice;
/// #     fn new() -> Result<Self> { Ok(Self) }
/// #     fn device_count(&self) -> Result<usize> { Ok(1) }
/// #     fn open(&self, _: usize) -> Result<HostDevice> { Ok(HostDevice::new(HostMemory::new(1 << 20)?)) }
/// # }
/// # mod library { pub use super::group; }
/// // In a plugin.
/// se_plugin::register_kernels!(MyPlatform: library::group);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! register_kernels {
    ($platform:ty: $($($group:ident)::+),+ $(,)?) => {$(
        $crate::__private::collect! {
            $crate::__private::KernelGroup,
            $crate::__private::KernelGroup($($group)::+::<$platform>)
        }
    )+};
}

/// Any platform whose devices are of the type `D`.
///
/// It is the platform of a context in code that is the same for all of them:
/// [`OpKernelContext::any_platform`](super::OpKernelContext::any_platform). It cannot be created or exported.
pub struct AnyPlatform<D>(Infallible, PhantomData<fn() -> D>);

impl<D> fmt::Debug for AnyPlatform<D> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

#[diagnostic::do_not_recommend]
impl<D: Device> Platform for AnyPlatform<D> {
    const NAME: &'static str = "ANY";
    const TYPE: &'static str = "ANY";
    type Device = D;

    fn new() -> Result<Self> {
        Err(Error::internal("`AnyPlatform` stands for the platform of a plugin; open that"))
    }
    fn device_count(&self) -> Result<usize> {
        match self.0 {}
    }
    fn open(&self, _: usize) -> Result<D> {
        match self.0 {}
    }
}
