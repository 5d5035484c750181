//! Small requests for memory when there is none left.

use crate::faulty::with_device;

/// Checks small requests: TensorFlow repeats those of up to 2304 bytes forever if they are refused.
#[test]
fn small_requests_get_memory_that_was_set_aside() {
    with_device(false, |device, _| {
        let memory = [1 << 20, 62 << 20].map(|bytes| device.allocate(bytes).unwrap());
        assert!(device.allocate(64 * 1024 + 1).is_none());
        let small: [_; 16] = std::array::from_fn(|_| device.allocate(64 * 1024).expect("memory"));
        for (value, &small) in (1..).zip(&small) {
            device.copy_to_device(small, &[value; 4]).unwrap();
        }
        for (value, &small) in (1..).zip(&small) {
            let mut back = [0; 4];
            device.copy_to_host(&mut back, small).unwrap();
            assert_eq!(back, [value; 4]);
        }
        assert!(device.allocate(64 * 1024).is_none(), "all of it is in use");
        device.deallocate(small[7]);
        assert_eq!(device.allocate(2304), Some(small[7]));
        for memory in small.into_iter().chain(memory) {
            device.deallocate(memory);
        }
    });
}

/// Checks small requests after the memory that was set aside is used up, too.
#[test]
fn small_requests_get_memory_that_reports_that_there_is_none() {
    with_device(false, |device, _| {
        assert!(device.allocate(1 << 30).is_none());
        let all = device.allocate(63 << 20).unwrap();
        let aside: [_; 16] = std::array::from_fn(|_| device.allocate(64 * 1024).expect("memory"));
        assert!(device.allocate(2305).is_none());
        let [small, another] = [(); 2].map(|()| device.allocate(2304).expect("no endless loop"));
        assert_ne!(small, another);
        let mut back = [0; 4];
        let error = device.copy_to_host(&mut back, small).unwrap_err();
        assert_eq!(error.code(), se_plugin::Code::ResourceExhausted);
        for memory in [small, another, all].into_iter().chain(aside) {
            device.deallocate(memory);
        }
        assert!(device.allocate(256).is_some_and(|memory| memory < small));
    });
}
