"""What checks share: the device under test, cells and outcomes, samples, transfer, comparison."""
