"""What prints a table of ratios; `results/` holds the committed ones, each row with device, versions and commit."""
