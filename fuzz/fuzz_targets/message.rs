//! Any bytes are foreign, unsound with lines that are there, or sound; and what is sound is written as it was read.

#![no_main]

use arborist_core::message::{
    Body, MessageReading, claims_to_be_ours, could_be_ours, plain_text, read, read_as_git,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert!(could_be_ours(bytes) || !claims_to_be_ours(bytes), "a cheap no was wrong");
    let _ = read_as_git(bytes);
    match read(bytes) {
        MessageReading::Foreign => assert!(!claims_to_be_ours(bytes)),
        MessageReading::Unsound(faults) => assert!(!faults.is_empty()),
        MessageReading::Sound(message) => {
            let _ = plain_text(&message.body);
            let _ = Body::parse(&message.body);
            let again = read(message.render().as_bytes());
            assert_eq!(again, MessageReading::Sound(message));
        }
    }
});
