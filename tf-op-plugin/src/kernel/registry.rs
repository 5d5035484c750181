//! The kernels of a plugin.

use crate::abi::trampoline::{Functions, KernelType, Target};
use crate::dtype::DType;
use crate::inventory::Inventory;
use crate::kernel::definition::Definition;
use core::any::TypeId;
use core::fmt;
use tf_plugin_core::{Error, Result, ensure};

/// A kernel for an op and some types of its attributes, as `#[kernel]` collects it.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// The op.
    pub op: &'static str,
    /// The options.
    pub options: Options,
    pub(crate) functions: Functions,
    /// File and line of the attribute.
    pub(crate) place: &'static str,
}

/// The options of `#[kernel]`. By default a kernel is for all types, with all arguments in device memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The types that attributes must have.
    pub types: &'static [(&'static str, DType)],
    /// The arguments that are in host memory.
    pub host_memory: &'static [&'static str],
    /// The label of the nodes that the kernel is for, if it is not empty.
    pub label: &'static str,
    /// The priority. Kernels with a higher one are preferred.
    pub priority: i32,
    /// Whether the kernel needs the host's functions for variables.
    pub variables: bool,
    /// Whether the kernel needs the host's functions for variants.
    pub variants: bool,
}

static ALL: Inventory<Registration> = Inventory::new();

impl Registration {
    /// Adds the kernel to those of the plugin.
    #[doc(hidden)]
    pub fn collect(&'static self) {
        ALL.push(self);
    }

    /// Creates the registration of a kernel for an op; `#[kernel]` is at `place`.
    #[must_use]
    pub const fn new<K: KernelType>(
        op: &'static str,
        place: &'static str,
        options: Options,
    ) -> Self {
        let functions = Functions::of_kernel::<K>();
        Self { op, options, functions, place }
    }

    /// Returns the same kernel with other options.
    #[must_use]
    pub const fn with_options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Returns whether both match the same node, so that TensorFlow could not choose.
    fn overlaps(&self, other: &Self) -> bool {
        let of = |attribute: &str| {
            other.options.types.iter().find(|(name, _)| *name == attribute).map(|&(_, dtype)| dtype)
        };
        self.op == other.op
            && self.options.label == other.options.label
            && self.options.priority == other.options.priority
            && self.options.types.iter().all(|&(name, dtype)| of(name).is_none_or(|of| of == dtype))
    }

    /// Returns whether this is for nodes with these types in attributes.
    pub fn is_for(&self, op: &str, types: &[(&str, DType)]) -> bool {
        let allows = |&(attribute, dtype): &(&str, DType)| {
            let mut constraints = self.options.types.iter().filter(|(name, _)| *name == attribute);
            constraints.all(|&(_, other)| other == dtype)
        };
        self.op == op && self.options.label.is_empty() && types.iter().all(allows)
    }

    /// Checks that the op has the named attributes and arguments: with one that it does not have, the op would
    /// fail on all devices.
    pub fn check(&self, definition: &Definition) -> Result<()> {
        for (name, _) in self.options.types {
            ensure!(
                definition.type_attributes.iter().any(|has| has == name),
                Error::invalid_argument(format!(
                    "{} has no attribute `{name}` that is a type; it has {:?}",
                    self.op, definition.type_attributes
                ))
            );
        }
        for name in self.options.host_memory {
            ensure!(
                definition.arguments.iter().any(|has| has == name),
                Error::invalid_argument(format!(
                    "{} has no input or output `{name}`; it has {:?}",
                    self.op, definition.arguments
                ))
            );
        }
        Ok(())
    }
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel `{}` for {}", (self.functions.name)(), self.op)?;
        for (index, (name, dtype)) in self.options.types.iter().enumerate() {
            let between = if index == 0 { " with" } else { "," };
            write!(f, "{between} {name} = {dtype}")?;
        }
        write!(f, " ({})", self.place)
    }
}

/// Returns the kernels for some devices, always in the same order.
#[must_use]
pub fn kernels_for<T: Target>() -> Vec<&'static Registration> {
    let mut kernels = ALL.all();
    kernels.retain(|one| (one.functions.target)() == TypeId::of::<T>());
    kernels.sort_by_key(|one| (one.op, one.place, one.options.types, (one.functions.name)()));
    kernels
}

/// The kernels to register, and why others are not registered.
#[derive(Debug, Default)]
pub struct Selection<'a> {
    /// Those to register.
    pub chosen: Vec<&'a Registration>,
    /// Each other one, and why it is not registered.
    pub refused: Vec<(&'a Registration, String)>,
}

/// Chooses the kernels to register. Skips those that the host cannot run, as `can_run` says, and the
/// second of two that match the same node: with both, the op would fail.
pub fn choose<'a>(
    all: impl IntoIterator<Item = &'a Registration>,
    can_run: impl Fn(&Registration) -> bool,
) -> Selection<'a> {
    let mut choice = Selection::default();
    for one in all {
        if !can_run(one) {
            continue;
        }
        match choice.chosen.iter().find(|chosen| chosen.overlaps(one)) {
            None => choice.chosen.push(one),
            Some(first) => choice.refused.push((
                one,
                format!(
                    "{one} is not registered, because {first} matches the same nodes; remove one of the two, or \
                     give them different types, labels or priorities"
                ),
            )),
        }
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::test_target::TestKernel;

    fn with(options: Options) -> Registration {
        Registration::new::<TestKernel>("Op", "here", options)
    }

    fn registration(types: &'static [(&'static str, DType)]) -> Registration {
        with(Options { types, ..Options::default() })
    }

    const FLOAT: &[(&str, DType)] = &[("T", DType::Float32)];
    const DOUBLE: &[(&str, DType)] = &[("T", DType::Float64)];
    const INDEX: &[(&str, DType)] = &[("Tidx", DType::Int32)];

    #[test]
    fn kernels_that_match_the_same_node_are_refused() {
        for (first, second) in [(FLOAT, FLOAT), (FLOAT, &[]), (&[], DOUBLE), (FLOAT, INDEX)] {
            let (first, second) = (registration(first), registration(second));
            let choice = choose([&first, &second], |_| true);
            assert_eq!(choice.chosen.len(), 1);
            assert_eq!(choice.refused.len(), 1);
            assert!(choice.refused[0].1.contains("matches the same nodes"), "{:?}", choice.refused);
        }
    }

    #[test]
    fn kernels_that_tensorflow_can_tell_apart_are_chosen() {
        let float = registration(FLOAT);
        for other in [
            registration(DOUBLE),
            with(Options { label: "x", ..float.options }),
            with(Options { priority: 1, ..float.options }),
            Registration { op: "Other", ..float },
        ] {
            let choice = choose([&float, &other], |_| true);
            assert_eq!(choice.chosen.len(), 2, "{other}");
        }
    }

    #[test]
    fn names_that_the_op_does_not_have_are_refused() {
        let definition = Definition {
            type_attributes: vec![String::from("T")],
            arguments: vec![String::from("x"), String::from("y")],
        };
        let on_host = |host_memory| with(Options { host_memory, ..Options::default() });
        on_host(&["x", "y"]).check(&definition).unwrap();
        registration(FLOAT).check(&definition).unwrap();
        let error = registration(INDEX).check(&definition).unwrap_err().to_string();
        assert!(error.contains("no attribute `Tidx`"), "{error}");
        let error = on_host(&["z"]).check(&definition).unwrap_err().to_string();
        assert!(error.contains("no input or output `z`"), "{error}");
    }

    #[test]
    fn a_registration_says_what_and_where() {
        let text = registration(FLOAT).to_string();
        assert!(text.ends_with("for Op with T = float32 (here)"), "{text}");
    }
}
