//! Notes in the shared library that say which methods of `WritableFile` a writer leaves to their defaults: a macro on
//! the `impl` of a filesystem cannot see the methods in the `impl` of its writer.
//!
//! The body of each default holds assembler directives that emit an ELF note (see `note` in `tf-plugin-core`). It is
//! compiled only for a type that has the default, so the library has the note if, and only if, one of its types does.

use tf_plugin_core::__private::elf_note;

/// The defaults of `WritableFile`, as bits.
pub(crate) const FLUSH: u32 = 1;
pub(crate) const SYNC: u32 = 2;
pub(crate) const CLOSE: u32 = 4;

/// Emits the note that a type has the default `OPERATION`; costs nothing at run time.
#[inline(always)]
pub(crate) fn leave<const OPERATION: u32>() {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(miri)
    ))]
    // SAFETY: directives alone, for another section: there is no instruction, and nothing of the machine changes.
    unsafe {
        core::arch::asm!(
            ".pushsection .note.tf_plugin, \"a\", %note",
            ".balign 4",
            // Sizes of the name and of the data after it, and the kind.
            ".long 10, 8, {kind}",
            ".asciz \"tf-plugin\"",
            ".balign 4",
            ".long {layout}, {operation}",
            ".popsection",
            kind = const elf_note::WRITER_DEFAULT,
            layout = const elf_note::LAYOUT,
            operation = const OPERATION,
            options(nomem, nostack, preserves_flags),
        );
    }
}
