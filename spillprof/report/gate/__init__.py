"""A gate report in the formats that people and CI systems read, and the trend of its recorded figures."""
