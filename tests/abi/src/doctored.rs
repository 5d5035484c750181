//! Mistakes planted into copies of the sources of `tf-fs-sys`, to see that the comparison names each.
//! Also part of the build script, which generates the code that measures the copies.

/// One copy with one mistake.
#[derive(Clone, Copy, Debug)]
pub struct Doctored {
    /// Name of the copy, a Rust identifier.
    pub name: &'static str,
    /// The module that is changed.
    pub module: &'static str,
    /// Texts, each of which occurs once when its turn comes, and their replacements.
    pub edits: &'static [(&'static str, &'static str)],
    /// What one problem that the comparison reports must contain.
    pub reported: &'static [&'static str],
}

/// Every copy.
pub const DOCTORED: &[Doctored] = &[
    Doctored {
        name: "field_removed",
        module: "filesystem",
        edits: &[(
            "pub flush_caches: Option<unsafe extern \"C\" fn(filesystem: *const TF_Filesystem)>,",
            "",
        )],
        reported: &["`TF_FilesystemOps::flush_caches`", "only the header"],
    },
    Doctored {
        name: "field_added",
        module: "filesystem",
        edits: &[(
            "pub owner: *mut TF_Filesystem,",
            "pub owner: *mut TF_Filesystem, pub generation: u64,",
        )],
        reported: &["`TF_TransactionToken::generation`", "only tf-fs-sys"],
    },
    Doctored {
        name: "fields_swapped",
        module: "filesystem",
        edits: &[
            ("pub type_tag: c_int,", "pub swapped: c_int,"),
            ("pub num_values: c_int,", "pub type_tag: c_int,"),
            ("pub swapped: c_int,", "pub num_values: c_int,"),
        ],
        reported: &["`TF_Filesystem_Option_Value::num_values`", "order"],
    },
    Doctored {
        name: "field_retyped",
        module: "filesystem",
        edits: &[("pub per_file: c_int,", "pub per_file: bool,")],
        reported: &["`TF_Filesystem_Option::per_file`", "the type is", "int", "bool"],
    },
    Doctored {
        name: "nested_field_retyped",
        module: "filesystem",
        edits: &[("pub buf_length: c_int,", "pub buf_length: usize,")],
        reported: &["`TF_Filesystem_Option_Value_Buffer::buf_length`", "size", "4", "8"],
    },
    Doctored {
        name: "packed",
        module: "file_statistics",
        edits: &[("#[repr(C)]", "#[repr(C)]\n#[repr(packed)]")],
        reported: &["`TF_FileStatistics`", "alignment", "8", "1"],
    },
    Doctored {
        name: "union_made_struct",
        module: "filesystem",
        edits: &[(
            "pub union TF_Filesystem_Option_Value_Union",
            "pub struct TF_Filesystem_Option_Value_Union",
        )],
        reported: &["`TF_Filesystem_Option_Value_Union`", "union"],
    },
    Doctored {
        name: "parameter_retyped",
        module: "filesystem",
        edits: &[("undeleted_files: *mut u64,", "undeleted_files: *mut i32,")],
        reported: &["`TF_FilesystemOps::delete_recursively`", "the type is", "int*"],
    },
    Doctored {
        name: "constness_lost",
        module: "filesystem",
        edits: &[(
            "Option<unsafe extern \"C\" fn(region: *const TF_ReadOnlyMemoryRegion) -> u64>",
            "Option<unsafe extern \"C\" fn(region: *mut TF_ReadOnlyMemoryRegion) -> u64>",
        )],
        reported: &["`TF_ReadOnlyMemoryRegionOps::length`", "the type is", "const"],
    },
    Doctored {
        name: "struct_added",
        module: "filesystem",
        edits: &[(
            "// Section 2 of the header",
            "#[repr(C)] pub struct TF_Extra { pub x: c_int }\n// Section 2 of the header",
        )],
        reported: &["`TF_Extra`", "only tf-fs-sys"],
    },
    Doctored {
        name: "struct_not_declared",
        module: "file_statistics",
        edits: &[
            ("pub struct TF_FileStatistics", "pub struct TF_FileStats"),
            ("#[repr(C)]", "pub type TF_FileStatistics = TF_FileStats;\n#[repr(C)]"),
        ],
        reported: &["`TF_FileStatistics`", "only the header"],
    },
    Doctored {
        name: "constant_changed",
        module: "status",
        edits: &[("pub const TF_NOT_FOUND: TF_Code = 5;", "pub const TF_NOT_FOUND: TF_Code = 50;")],
        reported: &["`TF_NOT_FOUND`", "is 5 ", "50"],
    },
    Doctored {
        name: "constant_removed",
        module: "status",
        edits: &[("pub const TF_DATA_LOSS: TF_Code = 15;", "const _: TF_Code = 15;")],
        reported: &["`TF_DATA_LOSS`", "only the header"],
    },
    Doctored {
        name: "constant_added",
        module: "filesystem",
        edits: &[(
            "pub const TF_FILESYSTEM_OPS_API: c_int = 0;",
            "pub const TF_FILESYSTEM_OPS_API: c_int = 0;\npub const TF_EXTRA: c_int = 0;",
        )],
        reported: &["`TF_EXTRA`", "only tf-fs-sys"],
    },
    Doctored {
        name: "enumerator_changed",
        module: "filesystem",
        edits: &[(
            "TF_Filesystem_Option_Type_Real: TF_Filesystem_Option_Type = 1;",
            "TF_Filesystem_Option_Type_Real: TF_Filesystem_Option_Type = 2;",
        )],
        reported: &["`TF_Filesystem_Option_Type_Real`", "is 1 ", "2"],
    },
    Doctored {
        name: "enumerator_retyped",
        module: "filesystem",
        edits: &[(
            "TF_Filesystem_Num_Option_Types: TF_Filesystem_Option_Type = 3;",
            "TF_Filesystem_Num_Option_Types: c_int = 3;",
        )],
        reported: &["`TF_Filesystem_Num_Option_Types`", "the type is", "int"],
    },
    Doctored {
        name: "enum_retyped",
        module: "status",
        edits: &[("pub type TF_Code = c_uint;", "pub type TF_Code = i64;")],
        reported: &["`TF_Code`", "the type is", "unsigned int", "long"],
    },
    Doctored {
        name: "alias_added",
        module: "status",
        edits: &[(
            "pub type TF_Code = c_uint;",
            "pub type TF_Code = c_uint;\npub type TF_Extra = c_uint;",
        )],
        reported: &["`TF_Extra`", "only tf-fs-sys"],
    },
    Doctored {
        name: "host_function_removed",
        module: "status",
        edits: &[("required fn TF_DeleteStatus(status: *mut TF_Status);", "")],
        reported: &["`TF_DeleteStatus`", "only the header"],
    },
    Doctored {
        name: "host_function_added",
        module: "status",
        edits: &[(
            "required fn TF_DeleteStatus(status: *mut TF_Status);",
            "required fn TF_DeleteStatus(status: *mut TF_Status); required fn TF_Extra();",
        )],
        reported: &["`TF_Extra`", "only tf-fs-sys"],
    },
    Doctored {
        name: "host_function_retyped",
        module: "status",
        edits: &[(
            "required fn TF_GetCode(status: *const TF_Status)",
            "required fn TF_GetCode(status: *mut TF_Status)",
        )],
        reported: &["`TF_GetCode`", "the type is", "const"],
    },
    Doctored {
        name: "registration_retyped",
        module: "registration",
        edits: &[("path: *const c_char, status: *mut TF_Status", "path: *const c_char")],
        reported: &["`TF_RegisterFilesystemPlugin`", "the type is", "TSL_Status*"],
    },
    Doctored {
        name: "registration_renamed",
        module: "registration",
        edits: &[("fn TF_RegisterFilesystemPlugin(", "fn TF_RegisterPlugin(")],
        reported: &["`TF_RegisterPlugin`", "only tf-fs-sys"],
    },
    Doctored {
        name: "entry_point_retyped",
        module: "filesystem",
        edits: &[(
            "unsafe extern \"C\" fn(plugin_info: *mut TF_FilesystemPluginInfo)",
            "unsafe extern \"C\" fn(plugin_info: *const TF_FilesystemPluginInfo)",
        )],
        reported: &["`TF_InitPlugin`", "the type is", "const"],
    },
    Doctored {
        name: "entry_point_removed",
        module: "filesystem",
        edits: &[("pub type TF_InitPluginFn =", "pub(crate) type TF_InitPluginFn =")],
        reported: &["`TF_InitPlugin`", "only the header"],
    },
    Doctored {
        name: "inline_function_removed",
        module: "filesystem",
        edits: &[(
            "pub const fn TF_SetFilesystemVersionMetadata",
            "pub(crate) const fn TF_SetFilesystemVersionMetadata",
        )],
        reported: &["`TF_SetFilesystemVersionMetadata`", "only the header"],
    },
    Doctored {
        name: "metadata_forgotten",
        module: "filesystem",
        edits: &[("ops.writable_file_ops_api = TF_WRITABLE_FILE_OPS_API;", "")],
        reported: &[
            "`TF_SetFilesystemVersionMetadata`",
            "`TF_FilesystemPluginOps::writable_file_ops_api`",
        ],
    },
    Doctored {
        name: "metadata_exchanged",
        module: "filesystem",
        edits: &[(
            "ops.random_access_file_ops_size = TF_RANDOM_ACCESS_FILE_OPS_SIZE;",
            "ops.random_access_file_ops_size = TF_WRITABLE_FILE_OPS_SIZE;",
        )],
        reported: &[
            "`TF_SetFilesystemVersionMetadata`",
            "`TF_FilesystemPluginOps::random_access_file_ops_size`",
        ],
    },
    Doctored {
        name: "struct_size_of_an_earlier_field",
        module: "stream_executor",
        edits: &[(
            "offset_of_end!(SP_Platform, force_memory_growth)",
            "offset_of_end!(SP_Platform, use_bfc_allocator)",
        )],
        reported: &["`SP_PLATFORM_STRUCT_SIZE`", "is 35 ", "34"],
    },
    Doctored {
        name: "struct_size_with_padding",
        module: "grappler",
        edits: &[(
            "offset_of_end!(TP_OptimizerConfigs, scoped_allocator_optimization)",
            "size_of::<TP_OptimizerConfigs>()",
        )],
        reported: &["`TP_OPTIMIZER_CONFIGS_STRUCT_SIZE`", "is 92 ", "96"],
    },
    Doctored {
        name: "struct_size_removed",
        module: "profiler",
        edits: &[("pub const TP_PROFILER_STRUCT_SIZE", "const TP_PROFILER_STRUCT_SIZE")],
        reported: &["`TP_PROFILER_STRUCT_SIZE`", "only the header"],
    },
    Doctored {
        name: "version_changed",
        module: "stream_executor",
        edits: &[("pub const SE_PATCH: i32 = 1;", "pub const SE_PATCH: i32 = 2;")],
        reported: &["`SE_PATCH`", "is 1 ", "2"],
    },
    Doctored {
        name: "booleans_swapped",
        module: "stream_executor",
        edits: &[
            ("pub supports_unified_memory: TF_Bool", "pub swapped: TF_Bool"),
            ("pub use_bfc_allocator: TF_Bool", "pub supports_unified_memory: TF_Bool"),
            ("pub swapped: TF_Bool", "pub use_bfc_allocator: TF_Bool"),
        ],
        reported: &["`SP_Platform::", "order"],
    },
    Doctored {
        name: "callback_inserted",
        module: "stream_executor",
        edits: &[(
            "pub mem_zero: Option<",
            "pub mem_one: Option<SP_StreamOp>, pub mem_zero: Option<",
        )],
        reported: &["`SP_StreamExecutor::host_callback`", "offset", "280", "288"],
    },
    Doctored {
        name: "keyword_field_retyped",
        module: "stream_executor",
        edits: &[("pub r#type: *const c_char", "pub r#type: *mut c_char")],
        reported: &["`SP_Platform::type`", "the type is", "const"],
    },
    Doctored {
        name: "handle_retyped",
        module: "stream_executor",
        edits: &[(
            "pub type SP_Event = *mut SP_Event_st;",
            "pub type SP_Event = *mut SP_Stream_st;",
        )],
        reported: &["`SP_StreamExecutor::destroy_event`", "the type is", "SP_Stream_st*"],
    },
    Doctored {
        name: "storage_too_small",
        module: "ctstring",
        edits: &[("_storage: [u64; 3],", "_storage: [u64; 2],")],
        reported: &["`TF_TString`", "size", "24", "16"],
    },
    Doctored {
        name: "data_type_signed",
        module: "datatype",
        edits: &[(
            "pub type TF_DataType = core::ffi::c_uint;",
            "pub type TF_DataType = core::ffi::c_int;",
        )],
        reported: &["`TF_DataType`", "the type is", "unsigned int"],
    },
    Doctored {
        name: "late_data_type_changed",
        module: "datatype",
        edits: &[("pub const TF_INT4: TF_DataType = 29;", "pub const TF_INT4: TF_DataType = 28;")],
        reported: &["`TF_INT4`", "is 29 ", "28"],
    },
    Doctored {
        name: "boolean_retyped",
        module: "c_api_macros",
        edits: &[("pub type TF_Bool = core::ffi::c_uchar;", "pub type TF_Bool = bool;")],
        reported: &["`TF_Bool`", "the type is", "unsigned char"],
    },
    Doctored {
        name: "kernel_callback_retyped",
        module: "kernels",
        edits: &[(
            "Option<unsafe extern \"C\" fn(ctx: *mut TF_OpKernelConstruction) -> *mut c_void>",
            "Option<unsafe extern \"C\" fn(ctx: *mut TF_OpKernelContext) -> *mut c_void>",
        )],
        reported: &["`TF_NewKernelBuilder`", "the type is", "TF_OpKernelConstruction*"],
    },
    Doctored {
        name: "kernel_entry_point_retyped",
        module: "kernels",
        edits: &[(
            "pub type TF_InitKernelFn = unsafe extern \"C\" fn();",
            "pub type TF_InitKernelFn = unsafe extern \"C\" fn(status: *mut TF_Status);",
        )],
        reported: &["`TF_InitKernel`", "the type is"],
    },
    Doctored {
        name: "optional_made_required",
        module: "logging",
        edits: &[("optional fn TF_Log(", "required fn TF_Log(")],
        reported: &["`TF_Log`", "only tf-fs-sys", "required function"],
    },
];

impl Doctored {
    /// The changed source of `module`, given its true source; that of other modules is unchanged.
    ///
    /// # Errors
    /// When an edit does not fit the source any more.
    pub fn apply(&self, module: &str, source: &str) -> Result<String, String> {
        let mut source = source.to_owned();
        if module != self.module {
            return Ok(source);
        }
        for (from, to) in self.edits {
            let count = source.matches(from).count();
            if count != 1 {
                return Err(format!(
                    "the doctored copy `{}` expects `{from}` once in {module}.rs, which has it \
                     {count} times; adapt src/doctored.rs of the ABI tests",
                    self.name
                ));
            }
            source = source.replacen(from, to, 1);
        }
        Ok(source)
    }
}
