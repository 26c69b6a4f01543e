"""deltastar"""
