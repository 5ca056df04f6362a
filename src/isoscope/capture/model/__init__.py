"""A model from a folder, a GGUF file or the hub, ready to be listened to."""
