"""The report: a summary as one HTML page, and its charts as pictures."""

from kernelstream_reproduce.report.page import page, write_page
from kernelstream_reproduce.report.pictures import write_pictures

__all__ = ["page", "write_page", "write_pictures"]
