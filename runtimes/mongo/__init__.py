"""Operations on a person's MongoDB: bounded, with before-images kept, taken back by `_id` against the after-images."""
