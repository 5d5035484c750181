//! The attributes of `tf-fs-plugin`, which re-exports them: use them from there.
//!
//! The macros read the names of the methods in an `impl Filesystem`, and write what a generic
//! function cannot be: a table of the operations that are implemented, one type for each scheme,
//! and the functions that TensorFlow looks for in a shared library.

use args::Macro;
use proc_macro::TokenStream;

mod args;
mod attributes;
mod conditions;
mod device;
mod errors;
mod export;
mod item;
mod kernel;
mod op;
mod operations;
mod plugins;
mod schemes;
mod strings;
mod table;

/// Exports a filesystem as a TensorFlow plugin. Goes on `impl Filesystem for T`.
///
/// ```standalone_crate
/// use tf_fs_plugin::prelude::*;
///
/// struct Empty;
///
/// #[filesystem_plugin(scheme = "empty")]
/// impl Filesystem for Empty {
///     fn new(_scheme: &str) -> Result<Self> {
///         Ok(Self)
///     }
///
///     fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
///         Err(Error::not_found(uri))
///     }
/// }
/// # fn main() {}
/// ```
///
/// In a crate with `crate-type = ["cdylib"]` this is a plugin. A crate exports one plugin, so the
/// attribute is there once; [`filesystem_plugins!`] exports several types together.
///
/// # Options
/// - `scheme = "mem"`: the scheme that the filesystem serves, without `://`.
/// - `schemes("s3", "s3a")`: several of them. `Filesystem::new` is called for each, with the scheme,
///   and creates a separate filesystem.
/// - `autoload = false`: do not register when TensorFlow is imported. Then `TF_InitKernel` is not
///   exported, and a user registers the library by its path.
/// - `allow_panic_abort`: build also with `panic = "abort"`. A panic then ends the Python process
///   instead of becoming an error of the operation, so without this option such a build is an
///   error.
/// - `crate = ::renamed`: the path of `tf-fs-plugin`, if it is not `::tf_fs_plugin`.
///
/// Either `scheme` or `schemes` must be given. A scheme is an ASCII letter followed by ASCII letters,
/// digits and `.`, and case matters: TensorFlow takes any other for a local path. `file`, `ram` and
/// `gs` are TensorFlow's own.
///
/// # What is written
/// - The `impl` as it is, with `type Reader = Unsupported;` and the like for each associated type that
///   is left out. A type must be given if a method that needs it is there.
/// - An `OperationTable` with the operations that the `impl` contains. An operation that is not there,
///   also because of a `#[cfg]`, is a null pointer for TensorFlow.
/// - `TF_InitPlugin` and `TF_InitKernel`, the two symbols that the library exports.
///
/// The methods must be written out. The attribute cannot see the methods that a macro in the `impl`
/// expands to, so such a macro is an error.
#[proc_macro_attribute]
pub fn filesystem_plugin(options: TokenStream, item: TokenStream) -> TokenStream {
    attributes::expand(options.into(), item.into(), Macro::FilesystemPlugin).into()
}

/// Exports a platform as a TensorFlow plugin. Goes on `impl Platform for T`, of the crate `se-plugin`.
///
/// In a crate with `crate-type = ["cdylib"]` the platform is then a plugin. A crate exports one platform.
///
/// # Options
/// - `graph_pass = MyPass`: a pass that rewrites graphs, `se_plugin::graph::GraphPass`. Any expression,
///   evaluated once, when the plugin is loaded.
/// - `profiler = &TIMELINE`: a profiler, `se_plugin::profiler::Profiler`. Any expression, as well.
/// - `allow_panic_abort`: build also with `panic = "abort"`. A panic then ends the Python process
///   instead of becoming an error, so without this option such a build is an error.
/// - `crate = ::renamed`: the path of `se-plugin`, if it is not `::se_plugin`.
///
/// # What is written
/// The `impl` as it is, a check of `NAME` and `TYPE` at compile time, and `SE_InitPlugin`, `TF_InitGraph` and
/// `TF_InitProfiler`, the symbols that the library exports. `SE_InitPlugin` also registers the kernels and
/// ops of the library: there is no `TF_InitKernel`, so that a filesystem in the same library can have it.
#[proc_macro_attribute]
pub fn device_plugin(options: TokenStream, item: TokenStream) -> TokenStream {
    device::device_plugin(options.into(), item.into()).into()
}

/// Registers a kernel for an op on a platform's devices. Goes on `impl Kernel for T`, of the crate `se-plugin`.
///
/// The plugin registers it when it is loaded; the `impl` may be in any module or crate of the
/// plugin. An `impl` may have the attribute several times, for several ops.
///
/// # Options
/// - `op = "Relu"`: the op, as in `tf.raw_ops`. Required.
/// - `types(T = [f32, f64], Tidx = [i32, i64])`: the types that attributes of the op are to have: one
///   kernel for each combination. A parameter of the `impl` has the name of its attribute and is replaced by the
///   type. An attribute without a parameter only restricts the kernel; its types may also be those
///   that Rust does not have, as in `T = [DType::Variant]`. An attribute that is not named may have any
///   type.
/// - `host_memory("perm")`: inputs and outputs that are in host memory.
/// - `label = "..."`: only for nodes with this label.
/// - `priority = 1`: preferred to kernels of a lower priority. The default is 0. Negative ones are
///   reserved: the SDK's own kernels have them.
/// - `variables`: only where TensorFlow exports its functions for variables, which 2.19 to 2.21 do not.
/// - `variants`: only where TensorFlow exports its functions for variants, which 2.19 to 2.21 do not.
/// - `crate = ::renamed`: the path of `se-plugin`, if it is not `::se_plugin`.
///
/// # Kernels of a library
/// In an `impl<P: Bound> Kernel for Op<P>` with `type Platform = P`, `P` is the platform of the plugin that will use the kernel. Such
/// a kernel is not registered by itself: the attribute implements `LibraryKernel`, and a plugin registers lists of these with
/// `se_plugin::register_kernels!`.
///
/// # What is written
/// The `impl` as it is, and a registration for each combination of types, or `impl LibraryKernel`.
#[proc_macro_attribute]
pub fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    kernel::kernel(options.into(), item.into()).into()
}

/// Defines an op and registers it when TensorFlow loads the library. Goes on the struct that implements `Op`, of the crate
/// `tf-op-plugin`.
///
/// ```
/// use tf_op_plugin::prelude::*;
///
/// /// Splits texts at white space.
/// #[op(name = "TextWords", inputs(text: [n]), outputs(words: [_]))]
/// struct TextWords {
///     /// Whether to convert words to lower case.
///     #[attr(default = false)]
///     lower: bool,
/// }
///
/// impl Op for TextWords {
///     type Inputs = Strings;
///     type Outputs = Ragged<Strings>;
///
///     fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<Ragged<Strings>> {
///         let mut words = RaggedBuf::<StringsBuf>::new();
///         for index in 0..text.len() {
///             let text = text.str(index)?;
///             for word in text.split_whitespace() {
///                 if self.lower { words.values.push(word.to_lowercase()) } else { words.values.push(word) }
///             }
///             words.end_row();
///         }
///         Ok(words.finish())
///     }
/// }
/// # fn main() {}
/// ```
///
/// # Options
/// - `name = "TextWords"`: the op's name, a capital letter followed by letters and digits. Required. Names are global to the
///   process: begin it with that of the library.
/// - `inputs(text: [..s], weights: [n, 3])`: the names of the inputs, in the order of `type Inputs`, each with the shape that
///   it must have, if there is one. A name in a shape is the same length in all of them, `_` any length, and a name
///   after `..` any number of dimensions. Other shapes are an error that names the input.
/// - `outputs(words: [_], counts: [..s])`: the outputs, in the order of `type Outputs`. Graphs know the shapes that are
///   declared. The shape of a ragged argument is that of its values. A list of tensors (`Vec`) is counted by the attribute `num_NAME`; `xs: N * [n]` gives the attribute a name,
///   which several lists of the same length can share.
/// - `types(T = [f32, i64])`: the types that a parameter of the struct can be. `T` is an attribute of the op.
/// - `stateful`: the result depends on more than the inputs. Without it TensorFlow computes nodes with constant inputs
///   once, and merges equal ones.
/// - `gradient = "TextWordsGrad"`: the op that computes the gradient, or a Python function as `module:function`. The
///   generated Python registers it.
/// - `crate = ::renamed`: the path of `tf-op-plugin`, if it is not `::tf_op_plugin`.
///
/// # Fields
/// - `#[attr]`: an attribute of the op, with the options `default = ...`, `min = 1` (the lowest integer or float, or the
///   fewest elements of a list) and `allowed("a", "b")` (the values of strings).
/// - `#[state(expression)]`: what the expression returns, once for each node. It can use the fields above it by name, and
///   `?`.
/// - `PhantomData` needs neither.
///
/// Doc comments become the help of the Python wrapper.
///
/// # What is written
/// The struct, an `impl OpSpec`, a constructor of the library that registers the op, and for unit tests
/// `fn from_attributes(lower: bool) -> Result<Self>`, unless there are more than seven attributes.
#[proc_macro_attribute]
pub fn op(options: TokenStream, item: TokenStream) -> TokenStream {
    op::op(options.into(), item.into()).into()
}

/// Exports the ops of a library. Goes once into a crate with `crate-type = ["cdylib"]`.
///
/// [`#[op]`](macro@op) registers the ops. This exports `TF_InitKernel`, without which TensorFlow does not load the library
/// from `site-packages/tensorflow-plugins/`, and the description from which `cargo tf-plugin` makes Python wrappers.
///
/// ```standalone_crate
/// tf_op_plugin::op_plugin!();
/// # fn main() {}
/// ```
///
/// # Options
/// - `autoload = false`: do not export `TF_InitKernel`, for a library that has a filesystem, too, which exports it.
/// - `allow_panic_abort`: build also with `panic = "abort"`. A panic then ends the Python process instead of becoming an
///   exception, so without this option such a build is an error.
/// - `crate = ::renamed`: the path of `tf-op-plugin`, if it is not `::tf_op_plugin`.
#[proc_macro]
pub fn op_plugin(options: TokenStream) -> TokenStream {
    op::export::op_plugin(options.into()).into()
}

/// Prepares a filesystem for export elsewhere. Goes on `impl Filesystem for T`.
///
/// It does what [`#[filesystem_plugin]`](macro@filesystem_plugin) does, except for the exports: for types that
/// [`filesystem_plugins!`] lists, for libraries of filesystems, and for generic types.
///
/// ```
/// use std::marker::PhantomData;
/// use tf_fs_plugin::prelude::*;
///
/// struct Empty<T>(PhantomData<T>);
///
/// #[filesystem]
/// impl<T: Send + Sync + 'static> Filesystem for Empty<T> {
///     fn new(_scheme: &str) -> Result<Self> {
///         Ok(Self(PhantomData))
///     }
/// }
/// ```
///
/// # Options
/// - `crate = ::renamed`: the path of `tf-fs-plugin`, if it is not `::tf_fs_plugin`.
#[proc_macro_attribute]
pub fn filesystem(options: TokenStream, item: TokenStream) -> TokenStream {
    attributes::expand(options.into(), item.into(), Macro::Filesystem).into()
}

/// Exports several filesystem types as one TensorFlow plugin. Each type has
/// [`#[filesystem]`](macro@filesystem) on its `impl Filesystem`.
///
/// ```standalone_crate
/// use tf_fs_plugin::prelude::*;
///
/// # struct S3;
/// # #[filesystem]
/// # impl Filesystem for S3 {
/// #     fn new(_: &str) -> Result<Self> { Ok(Self) }
/// # }
/// # struct Gcs;
/// # #[filesystem]
/// # impl Filesystem for Gcs {
/// #     fn new(_: &str) -> Result<Self> { Ok(Self) }
/// # }
/// filesystem_plugins! {
///     "s3" | "s3a" => S3,
///     "gs2" => Gcs;
///     autoload = false
/// }
/// # fn main() {}
/// ```
///
/// The entries are `"scheme" | "another scheme" => Type`, separated by commas. Options follow after a
/// `;`: `autoload = false`, `allow_panic_abort` and `crate = path`, each as
/// [`#[filesystem_plugin]`](macro@filesystem_plugin) has it.
///
/// It defines a type, `pub enum FilesystemPlugins {}`, that represents all of them in tests.
#[proc_macro]
pub fn filesystem_plugins(input: TokenStream) -> TokenStream {
    plugins::expand(input.into()).into()
}
