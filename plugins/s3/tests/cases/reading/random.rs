//! Reads in random places, of every length.

use s3_server::{At, Fault, What, When};
use tf_plugin_conformance_tests::effort;
use tf_plugin_s3_tests::{IMPATIENT, Store, content, host};

mod random_reads {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        /// Of a place in thousandths of the file.
        At(u32, usize),
        /// After the last one.
        Next(usize),
        /// So many bytes before the last one.
        Back(usize, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let n = prop_oneof![
            Just(1_usize),
            1..100_usize,
            1..20_000_usize,
            Just(65_536),
            Just(1 << 19),
            1..3_000_000_usize
        ];
        prop_oneof![
            1 => (0..1_005_u32, n.clone()).prop_map(|(place, n)| Step::At(place, n)),
            4 => n.clone().prop_map(Step::Next),
            1 => (1..200_000_usize, n).prop_map(|(back, n)| Step::Back(back, n)),
        ]
    }

    fn fault() -> impl Strategy<Value = Option<What>> {
        let faults = [
            What::ResetBody(At::Middle),
            What::CutBody(At::Byte(1)),
            What::Reset,
            What::status(503, "SlowDown"),
            What::WrongContentRange,
            What::ContentLength(-3),
            What::WholeFor206,
            What::CloseIdle,
            What::NoEtag,
        ];
        prop::option::weighted(0.7, prop::sample::select(faults.to_vec()))
    }

    proptest! {
        #![proptest_config(effort::random(48, 256))]

        #[test]
        fn give_right_bytes_or_an_error(
            len in prop_oneof![0..300_000_usize, 1_000_000..9_000_000_usize],
            part in prop_oneof![Just("65536"), Just("1048576"), Just("8388608")],
            every in 2..6_usize,
            fault in fault(),
            steps in prop::collection::vec(step(), 1..30),
        ) {
            // Without a fault nothing may fail, however long a busy machine takes.
            let store = Store::with("model", if fault.is_some() { IMPATIENT } else { &[] });
            store.set(&[("read_part_bytes", part)]);
            let body = content(len, 11);
            store.put("f", body.clone());
            let harmless = fault.is_none();
            if let Some(what) = fault {
                store.inject(Fault::new(When::Every(every), what).operation("GetObject"));
            }
            let file = match host().new_random_access_file(store.uri("f")) {
                Ok(file) => file,
                Err(error) => {
                    prop_assert!(!harmless, "{error:#}");
                    return Ok(());
                }
            };
            let mut place = 0;
            for step in steps {
                let (at, n) = match step {
                    Step::At(thousandths, n) => (len * thousandths as usize / 1_000, n),
                    Step::Next(n) => (place, n),
                    Step::Back(back, n) => (place.saturating_sub(back), n),
                };
                match file.read(at as u64, n) {
                    Ok(read) => {
                        let expected = body.get(at..len.min(at + n)).unwrap_or_default();
                        prop_assert!(read == expected, "{at} {n}: {} bytes of {}", read.len(), expected.len());
                    }
                    Err(error) => prop_assert!(!harmless, "{error:#}"),
                }
                place = len.min(at + n);
            }
        }
    }
}
