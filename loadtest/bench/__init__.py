"""What loadtest/compare is made of: servers as processes, requests, measurements, the table."""
