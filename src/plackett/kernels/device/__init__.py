"""The code that runs on the device. Triton traces it, so it carries no Python types; `plackett.kernels` launches it."""
