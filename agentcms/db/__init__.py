"""Work with the database that Django does not do: locks, outages, partitions, encryption and fast statements."""
