//! All but `localfs`: one program, so that others run while a test waits 20 s for a defect that hangs.

mod defects;
mod device_defects;
mod device_processes;
mod faulty;
mod memfs;
mod op_defects;
mod read_only;
